#include "structure/json_nodes.h"

#include <algorithm>
#include <map>

#include "base/utf8.h"
#include "structure/json_numbers.h"
#include "structure/regex_node.h"
#include "structure/utf8_ranges.h"

namespace verbatim {

namespace {

const char* const kComma = ", ";

NodePointer any_characters() {
  return repeat_node(character_node({{0, kLastCharacter}}, true), 0, -1);
}

/// The rest of a key that has `at` characters in common with all of `keys`, given as their characters.
NodePointer rest_of_key(std::span<const std::u32string> keys, size_t at) {
  constexpr size_t kMostCommon = 64;
  std::map<char32_t, std::vector<std::u32string>> next;
  bool ends = false;
  for (const std::u32string& key : keys) {
    if (key.size() == at) {
      ends = true;
    } else {
      next[key[at]].push_back(key);
    }
  }
  std::vector<CharacterRange> named;
  std::vector<NodePointer> choices;
  for (const auto& [character, longer] : next) {
    named.push_back({character, character});
    if (at + 1 >= kMostCommon) continue;
    choices.push_back(
        sequence_node({character_node({{character, character}}, true), rest_of_key(longer, at + 1)}));
  }
  choices.push_back(sequence_node({character_node(complement(joined(named)), true), any_characters()}));
  if (!ends) choices.push_back(text_node(""));
  return choice_node(std::move(choices));
}

void dump(const OrderedJson& value, std::string& text) {
  if (value.is_string()) {
    text += '"' + json_escaped(value.get_ref<const std::string&>()) + '"';
  } else if (value.is_array()) {
    text += '[';
    for (size_t i = 0; i < value.size(); ++i) {
      if (i > 0) text += kComma;
      dump(value[i], text);
    }
    text += ']';
  } else if (value.is_object()) {
    text += '{';
    bool first = true;
    for (const auto& [key, member] : value.items()) {
      if (!first) text += kComma;
      first = false;
      text += '"' + json_escaped(key) + "\": ";
      dump(member, text);
    }
    text += '}';
  } else {
    text += value.dump();
  }
}

/// The pattern of a format; null if it is not known. Each describes texts of the format, not all of them:
/// lengths are limited, and rare forms are left out.
const char* pattern_of(std::string_view format) {
#define VERBATIM_DATE                                                        \
  "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|" \
  "[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
#define VERBATIM_TIME \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-](0[0-9]|1[0-3]):[0-5][0-9])"
#define VERBATIM_NAME "[A-Za-z0-9]([A-Za-z0-9-]{0,20}[A-Za-z0-9])?"
#define VERBATIM_HOST VERBATIM_NAME "(\\." VERBATIM_NAME "){1,4}"
#define VERBATIM_BYTE "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
  constexpr std::pair<std::string_view, const char*> kPatterns[] = {
      {"date", VERBATIM_DATE},
      {"time", VERBATIM_TIME},
      {"date-time", VERBATIM_DATE "T" VERBATIM_TIME},
      {"duration",
       "P([0-9]{1,4}Y)?([0-9]{1,3}M)?[0-9]{1,4}D(T[0-9]{1,4}H)?|PT([0-9]{1,4}H[0-9]{1,4}M|"
       "[0-9]{1,4}[HMS])|P[0-9]{1,4}[YMW]"},
      {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"},
      {"email", "[A-Za-z0-9_+-]{1,20}(\\.[A-Za-z0-9_+-]{1,20}){0,2}@" VERBATIM_HOST},
      {"hostname", VERBATIM_HOST},
      {"ipv4", VERBATIM_BYTE "(\\." VERBATIM_BYTE "){3}"},
      {"ipv6", "[0-9a-f]{1,4}(:[0-9a-f]{1,4}){7}"},
      {"uri", "https?://" VERBATIM_HOST "(/[A-Za-z0-9._~-]{1,60}){0,8}/?"},
  };
#undef VERBATIM_DATE
#undef VERBATIM_TIME
#undef VERBATIM_NAME
#undef VERBATIM_HOST
#undef VERBATIM_BYTE
  for (const auto& [name, pattern] : kPatterns) {
    if (name == format) return pattern;
  }
  return nullptr;
}

}  // namespace

NodePointer json_string_node(int32_t least, int32_t most) {
  return sequence_node({text_node("\""),
                        make_node({.kind = Structure::Node::Kind::kJsonString, .least = least, .most = most}),
                        text_node("\"")});
}

NodePointer other_key_node(std::span<const std::string> keys) {
  std::vector<std::u32string> characters;
  for (const std::string& key : keys) {
    std::u32string& each = characters.emplace_back();
    for (size_t i = 0; i < key.size(); i += utf8_length(key[i])) each += utf8_character(key, i);
  }
  return sequence_node({text_node("\""), rest_of_key(characters, 0), text_node("\"")});
}

std::string dumped(const OrderedJson& value) {
  std::string text;
  dump(value, text);
  return text;
}

NodePointer any_value_node(int32_t rule) {
  const NodePointer list =
      sequence_node({text_node("["), repeat_node(reference_node(rule), 0, -1, kComma), text_node("]")});
  return choice_node({texts_node({"null", "true", "false"}), number_node({}, {}), json_string_node(), list,
                      any_object_node(rule)});
}

NodePointer any_object_node(int32_t rule) {
  const NodePointer member = sequence_node({json_string_node(), text_node(": "), reference_node(rule)});
  return sequence_node({text_node("{"), repeat_node(member, 0, -1, kComma), text_node("}")});
}

std::optional<NodePointer> format_node(std::string_view format) {
  const char* const pattern = pattern_of(format);
  if (pattern == nullptr) return std::nullopt;
  static const std::string where = "a format";
  return sequence_node(
      {text_node("\""), regex_node(pattern, PatternUse::kWholeText, where), text_node("\"")});
}

}  // namespace verbatim
