#include "agent/json.h"

#include <fmt/format.h>

#include <vector>

#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

/// Why a text must not be parsed: it holds an object with too many members, or lies too deep. Empty if it
/// may. The parser's own watch cannot say so, because with one it looks through a list for each of its parts.
std::string excess(std::string_view text) {
  std::vector<size_t> open;  // the members of each object that is open, and 0 for lists
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      open.push_back(0);
      if (static_cast<int>(open.size()) > kDeepestJson)
        return fmt::format("the JSON lies deeper than {}", kDeepestJson);
    } else if ((c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
    } else if (c == ':' && !open.empty() && ++open.back() > kMostJsonMembers) {
      return fmt::format("an object of the JSON has more than {} members", kMostJsonMembers);
    }
  }
  return {};
}

}  // namespace

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string as_text(const Json& json) {
  return json.is_string() ? json.get_ref<const std::string&>() : dump(json);
}

std::optional<Json> parse_json(std::string_view text, std::string* why) {
  if (find_invalid_utf8(text) != std::string_view::npos) return std::nullopt;
  if (std::string fault = excess(text); !fault.empty()) {
    if (why) *why = std::move(fault);
    return std::nullopt;
  }
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  return json;
}

std::string_view first_bytes(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most);
}

}  // namespace verbatim::agent
