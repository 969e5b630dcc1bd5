#include "templates/lexer.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace verbatim::jinja {

namespace {

using WordKind = LexedToken::Kind;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Line breaks as one character, and without the one at the end, as Jinja reads a template.
std::string with_plain_line_breaks(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(with_plain_line_breaks(source)), rest_(source_) {}

  std::vector<LexedToken> run() {
    while (at_ < rest_.size()) text_then_tag();
    add(WordKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  void add(WordKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void advance_to(size_t offset) {
    line_ += static_cast<int32_t>(std::count(rest_.begin() + static_cast<ptrdiff_t>(at_),
                                             rest_.begin() + static_cast<ptrdiff_t>(offset), '\n'));
    at_ = offset;
  }

  bool follows(std::string_view what) const { return rest_.substr(at_).starts_with(what); }

  void skip_blanks() {
    size_t end = at_;
    while (end < rest_.size() && is_blank(rest_[end])) ++end;
    advance_to(end);
  }

  /// The text up to the next tag, and the tag or comment.
  void text_then_tag() {
    size_t tag = at_;
    while (true) {
      tag = rest_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= rest_.size()) {
        add_text(rest_.size(), false, false);
        return advance_to(rest_.size());
      }
      const char kind = rest_[tag + 1];
      if (kind == '{' || kind == '%' || kind == '#') break;
      ++tag;
    }
    const char kind = rest_[tag + 1];
    const char sign = tag + 2 < rest_.size() ? rest_[tag + 2] : ' ';
    add_text(tag, sign == '-', kind != '{' && sign != '+');
    advance_to(tag + 2);
    if (sign == '-' || (sign == '+' && kind != '{')) advance_to(at_ + 1);
    if (kind == '#') return comment();
    if (kind == '%' && raw()) return;
    add(kind == '{' ? WordKind::kOutputBegin : WordKind::kTagBegin, "");
    inside(kind == '{');
  }

  /// Adds the text from here to `end`, without white space at its end as the tag behind it wants.
  void add_text(size_t end, bool strip, bool strip_line) {
    std::string_view text = rest_.substr(at_, end - at_);
    if (strip) {
      while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    } else if (strip_line) {
      size_t begin = text.size();
      while (begin > 0 && is_blank(text[begin - 1]) && text[begin - 1] != '\n') --begin;
      const size_t before = at_ + begin;
      if (before == 0 || rest_[before - 1] == '\n') text = text.substr(0, begin);
    }
    if (!text.empty()) add(WordKind::kText, std::string(text));
  }

  /// Goes behind the end of a tag or comment, whose closing sign begins here.
  void close(std::string_view end, bool trims) {
    const bool strip = follows("-");
    const bool keep = follows("+");
    advance_to(at_ + (strip || keep ? 1 : 0) + end.size());
    if (strip) {
      skip_blanks();
    } else if (trims && !keep && follows("\n")) {
      advance_to(at_ + 1);
    }
  }

  void comment() {
    const size_t end = rest_.find("#}", at_);
    if (end == std::string_view::npos) bad_input("the chat template, line {}: the comment has no end", line_);
    const bool sign = end > at_ && (rest_[end - 1] == '-' || rest_[end - 1] == '+');
    advance_to(sign ? end - 1 : end);
    close("#}", true);
  }

  /// The offset behind a tag that holds nothing but `name`, if one begins at `offset`, where its "{%" is
  /// past; npos otherwise. Leaves the closing sign to the caller.
  size_t behind_name(size_t offset, std::string_view name) const {
    while (offset < rest_.size() && is_blank(rest_[offset])) ++offset;
    if (!rest_.substr(offset).starts_with(name)) return std::string_view::npos;
    offset += name.size();
    while (offset < rest_.size() && is_blank(rest_[offset])) ++offset;
    const std::string_view left = rest_.substr(offset);
    return left.starts_with("%}") || left.starts_with("-%}") || left.starts_with("+%}")
               ? offset
               : std::string_view::npos;
  }

  /// Takes a raw block, if one begins here.
  bool raw() {
    const size_t behind = behind_name(at_, "raw");
    if (behind == std::string_view::npos) return false;
    advance_to(behind);
    close("%}", false);
    for (size_t tag = rest_.find("{%", at_); tag != std::string_view::npos; tag = rest_.find("{%", tag + 2)) {
      const char sign = tag + 2 < rest_.size() ? rest_[tag + 2] : ' ';
      const size_t end = behind_name(tag + (sign == '-' || sign == '+' ? 3 : 2), "endraw");
      if (end == std::string_view::npos) continue;
      add_text(tag, sign == '-', sign != '+');
      advance_to(end);
      close("%}", true);
      return true;
    }
    bad_input("the chat template, line {}: 'raw' has no 'endraw'", line_);
  }

  bool closes(bool output) const {
    const std::string_view left = rest_.substr(at_);
    if (output) return left.starts_with("}}") || left.starts_with("-}}");
    return left.starts_with("%}") || left.starts_with("-%}") || left.starts_with("+%}");
  }

  /// The words between the beginning of a tag and its end, and the end.
  void inside(bool output) {
    int32_t open = 0;
    while (true) {
      skip_blanks();
      if (at_ >= rest_.size()) bad_input("the chat template, line {}: the tag has no end", line_);
      if (open == 0 && closes(output)) break;
      word(open);
    }
    add(output ? WordKind::kOutputEnd : WordKind::kTagEnd, "");
    close(output ? "}}" : "%}", !output);
  }

  void word(int32_t& open) {
    const char c = rest_[at_];
    if (begins_name(c)) {
      size_t end = at_;
      while (end < rest_.size() && (begins_name(rest_[end]) || is_digit(rest_[end]))) ++end;
      add(WordKind::kName, std::string(rest_.substr(at_, end - at_)));
      return advance_to(end);
    }
    if (is_digit(c)) return number();
    if (c == '\'' || c == '"') return string(c);
    static constexpr std::array<std::string_view, 6> kPairs = {"==", "!=", "<=", ">=", "//", "**"};
    for (const std::string_view pair : kPairs) {
      if (!follows(pair)) continue;
      add(WordKind::kOperator, std::string(pair));
      return advance_to(at_ + 2);
    }
    if (std::string_view("+-*/%~<>=()[]{},.:|").find(c) == std::string_view::npos) {
      bad_input("the chat template, line {}: a character that belongs to no expression (byte 0x{:02x})",
                line_, static_cast<unsigned char>(c));
    }
    if (c == '(' || c == '[' || c == '{') ++open;
    if (c == ')' || c == ']' || c == '}') --open;
    if (open < 0) bad_input("the chat template, line {}: '{}' closes nothing", line_, c);
    add(WordKind::kOperator, std::string(1, c));
    advance_to(at_ + 1);
  }

  void number() {
    size_t end = at_;
    const auto digits = [&] {
      while (end < rest_.size() && (is_digit(rest_[end]) || rest_[end] == '_')) ++end;
    };
    const auto digit_at = [&](size_t offset) { return offset < rest_.size() && is_digit(rest_[offset]); };
    digits();
    bool whole = true;
    if (end < rest_.size() && rest_[end] == '.' && digit_at(end + 1)) {
      whole = false;
      ++end;
      digits();
    }
    if (end < rest_.size() && (rest_[end] == 'e' || rest_[end] == 'E')) {
      const bool sign = end + 1 < rest_.size() && (rest_[end + 1] == '-' || rest_[end + 1] == '+');
      if (digit_at(end + (sign ? 2 : 1))) {
        whole = false;
        end += sign ? 2 : 1;
        digits();
      }
    }
    std::string text(rest_.substr(at_, end - at_));
    std::erase(text, '_');
    add(whole ? WordKind::kInteger : WordKind::kFloat, std::move(text));
    advance_to(end);
  }

  void string(char quote) {
    const int32_t line = line_;
    std::string text;
    size_t at = at_ + 1;
    while (at < rest_.size() && rest_[at] != quote) {
      if (rest_[at] == '\\' && at + 1 < rest_.size()) {
        at = escape(at + 1, text);
      } else {
        text += rest_[at++];
      }
    }
    if (at >= rest_.size()) bad_input("the chat template, line {}: the string has no end", line);
    add(WordKind::kString, std::move(text));
    advance_to(at + 1);
  }

  /// Appends what the escape at an offset, its backslash past, stands for. Returns the offset behind it.
  size_t escape(size_t at, std::string& text) {
    const char c = rest_[at++];
    static constexpr std::string_view kNames = "ntrbfva0\\'\"";
    static constexpr std::string_view kMeanings("\n\t\r\b\f\v\a\0\\'\"", 11);
    if (c == '\n') return at;
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits != 0) return code_point(at, digits, text);
    const size_t place = kNames.find(c);
    if (place == std::string_view::npos) {
      text += '\\';  // as Python does with an escape that it does not know
      text += c;
    } else {
      text += kMeanings[place];
    }
    return at;
  }

  size_t code_point(size_t at, size_t digits, std::string& text) {
    uint32_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at) {
      const char c = at < rest_.size() ? rest_[at] : ' ';
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) bad_input("the chat template, line {}: a broken escape in a string", line_);
      value = value << 4 | static_cast<uint32_t>(digit);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
      bad_input("the chat template, line {}: an escape in a string is no character", line_);
    }
    append_code_point(value, text);
    return at;
  }

  static void append_code_point(uint32_t c, std::string& text) {
    const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (c >> shift & 0x3F)); };
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += static_cast<char>(0xC0 | c >> 6);
      tail(0);
    } else if (c < 0x10000) {
      text += static_cast<char>(0xE0 | c >> 12);
      tail(6);
      tail(0);
    } else {
      text += static_cast<char>(0xF0 | c >> 18);
      tail(12);
      tail(6);
      tail(0);
    }
  }

  std::string source_;
  std::string_view rest_;
  size_t at_ = 0;
  int32_t line_ = 1;
  std::vector<LexedToken> tokens_;
};

}  // namespace

std::vector<LexedToken> lex(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace verbatim::jinja
