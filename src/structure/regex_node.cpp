#include "structure/regex_node.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "structure/utf8_ranges.h"

namespace verbatim {

namespace {

using Ranges = std::vector<CharacterRange>;

constexpr int kDeepestGroups = 100;
constexpr int32_t kMostRepeats = 100000;
constexpr size_t kLongestPattern = 16384;

Ranges digits() {
  return {{'0', '9'}};
}
Ranges word_characters() {
  return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
}
Ranges white_space() {
  return {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
          {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
}
Ranges line_ends() {
  return {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
}

class PatternParser {
 public:
  PatternParser(std::string_view pattern, PatternUse use, const std::string& where)
      : pattern_(pattern), json_(use == PatternUse::kInsideJsonString), where_(where) {}

  NodePointer parse() {
    if (pattern_.size() > kLongestPattern) refuse("is too long");
    if (find_invalid_utf8(pattern_) != std::string_view::npos) refuse("is not valid UTF-8");
    NodePointer node = alternatives(0);
    if (at_ < pattern_.size()) refuse("has a ) without its (");
    return node;
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    bad_input("{}: the pattern \"{}\" {} (at byte {})", where_, printable(pattern_.substr(0, 100)), what,
              at_);
  }

  bool more() const { return at_ < pattern_.size(); }
  char peek() const { return more() ? pattern_[at_] : '\0'; }
  bool take(char c) {
    if (!more() || pattern_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view text) {
    if (!pattern_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  uint32_t character() {
    if (!more()) refuse("ends too early");
    const uint32_t c = utf8_character(pattern_, at_);
    at_ += utf8_length(pattern_[at_]);
    return c;
  }

  NodePointer one_of(Ranges ranges) const { return character_node(joined(std::move(ranges)), json_); }
  NodePointer anything() const { return repeat_node(one_of({{0, kLastCharacter}}), 0, -1); }

  NodePointer alternatives(int depth) {
    if (depth > kDeepestGroups) refuse("nests too deep");
    std::vector<NodePointer> choices;
    do {
      choices.push_back(sequence(depth));
    } while (take('|'));
    return choice_node(std::move(choices));
  }

  /// One of several alternatives. Only those that are not in a group may be anchored, so that an anchor is
  /// always at an end of the text.
  NodePointer sequence(int depth) {
    std::vector<NodePointer> parts;
    const bool begins = depth == 0 && take('^');
    bool ends = false;
    while (more() && peek() != '|' && peek() != ')') {
      if (depth == 0 && peek() == '$' && (at_ + 1 == pattern_.size() || pattern_[at_ + 1] == '|')) {
        ++at_;
        ends = true;
        break;
      }
      parts.push_back(repeated(depth));
    }
    if (json_ && depth == 0) {
      if (!begins) parts.insert(parts.begin(), anything());
      if (!ends) parts.push_back(anything());
    }
    return parts.size() == 1 ? parts.front() : sequence_node(std::move(parts));
  }

  int32_t number() {
    int32_t value = 0;
    const size_t first = at_;
    for (; more() && peek() >= '0' && peek() <= '9'; ++at_) {
      value = value * 10 + (peek() - '0');
      if (value > kMostRepeats) refuse("repeats something too often");
    }
    if (at_ == first) refuse("has a { that is not a number of repetitions; write \\{");
    return value;
  }

  NodePointer repeated(int depth) {
    NodePointer part = atom(depth);
    int32_t least = 1;
    int32_t most = 1;
    if (take('*')) {
      least = 0;
      most = -1;
    } else if (take('+')) {
      most = -1;
    } else if (take('?')) {
      least = 0;
    } else if (take('{')) {
      least = number();
      most = least;
      if (take(',')) most = peek() == '}' ? -1 : number();
      if (!take('}')) refuse("has a { without its }");
      if (most >= 0 && most < least) refuse("has repetitions out of order");
    } else {
      return part;
    }
    take('?');  // lazy or not, the texts are the same
    if (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{') refuse("repeats a repetition");
    return repeat_node(std::move(part), least, most);
  }

  NodePointer atom(int depth) {
    if (take('(')) {
      if (take('?') && !take(':')) {
        if (!take('<') || peek() == '=' || peek() == '!') refuse("looks around, which is not possible here");
        while (more() && peek() != '>') ++at_;  // the name of a group
        if (!take('>')) refuse("has a group without a name");
      }
      NodePointer group = alternatives(depth + 1);
      if (!take(')')) refuse("has a ( without its )");
      return group;
    }
    if (take('[')) return one_of(character_class());
    if (take('.')) return one_of(complement(joined(line_ends())));
    if (take('\\')) {
      if (peek() == 'b' || peek() == 'B') refuse("has a word boundary, which is not possible here");
      return one_of(escape());
    }
    const char c = peek();
    if (c == '^' || c == '$')
      refuse("has an anchor that is not at an end of an alternative outside of groups");
    if (c == '*' || c == '+' || c == '?' || c == '{') refuse("repeats nothing");
    if (c == ']' || c == '}') refuse("has a bracket that closes nothing; put a backslash before it");
    const uint32_t own = character();
    return one_of({{own, own}});
  }

  uint32_t hexadecimal(size_t digits) {
    uint32_t value = 0;
    for (size_t i = 0; i < digits; ++i) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) refuse("has an escape without its digits");
      value = value * 16 + static_cast<uint32_t>(digit);
      ++at_;
    }
    return value;
  }

  uint32_t unicode_escape() {
    if (!take('{')) {
      const uint32_t first = hexadecimal(4);
      if (first < 0xD800 || first > 0xDFFF) return first;
      if (first > 0xDBFF || !take("\\u")) refuse("has half a character");
      const uint32_t second = hexadecimal(4);
      if (second < 0xDC00 || second > 0xDFFF) refuse("has half a character");
      return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    }
    size_t count = 0;
    while (at_ + count < pattern_.size() && pattern_[at_ + count] != '}') ++count;
    if (count < 1 || count > 6) refuse("has an escape without its digits");
    const uint32_t c = hexadecimal(count);
    if (!take('}') || c > kLastCharacter || (c >= 0xD800 && c <= 0xDFFF))
      refuse("has an escape of no character");
    return c;
  }

  /// What a backslash makes of what comes after it.
  Ranges escape() {
    const uint32_t c = character();
    const auto one = [](uint32_t own) { return Ranges{{own, own}}; };
    switch (c) {
      case 'd':
        return digits();
      case 'D':
        return complement(digits());
      case 'w':
        return word_characters();
      case 'W':
        return complement(word_characters());
      case 's':
        return white_space();
      case 'S':
        return complement(joined(white_space()));
      case 't':
        return one('\t');
      case 'n':
        return one('\n');
      case 'v':
        return one('\v');
      case 'f':
        return one('\f');
      case 'r':
        return one('\r');
      case '0':
        if (peek() >= '0' && peek() <= '9') refuse("has an octal escape, which is not possible here");
        return one(0);
      case 'x':
        return one(hexadecimal(2));
      case 'u':
        return one(unicode_escape());
      default:
        break;
    }
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9');
    if (letter) refuse("has an escape that is not possible here");
    return one(c);
  }

  Ranges class_escape() {
    if (take('b')) return {{'\b', '\b'}};
    return escape();
  }

  Ranges character_class() {
    const bool negated = take('^');
    Ranges ranges;
    while (!take(']')) {
      if (!more()) refuse("has a [ without its ]");
      const auto read = [this]() -> Ranges {
        if (take('\\')) return class_escape();
        const uint32_t c = character();
        return {{c, c}};
      };
      Ranges first = read();
      const bool range = peek() == '-' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']';
      if (range) {
        ++at_;
        const Ranges last = read();
        const auto single = [](const Ranges& each) {
          return each.size() == 1 && each[0].first == each[0].last;
        };
        if (!single(first) || !single(last)) refuse("has a range between classes of characters");
        if (first[0].first > last[0].first) refuse("has a range out of order");
        first[0].last = last[0].first;
      }
      ranges.insert(ranges.end(), first.begin(), first.end());
    }
    ranges = joined(std::move(ranges));
    return negated ? complement(ranges) : ranges;
  }

  std::string_view pattern_;
  bool json_;
  const std::string& where_;
  size_t at_ = 0;
};

}  // namespace

NodePointer regex_node(std::string_view pattern, PatternUse use, const std::string& where) {
  return PatternParser(pattern, use, where).parse();
}

}  // namespace verbatim
