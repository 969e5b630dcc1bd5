#include "agent/plan/line_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "agent/plan/plan_error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}
bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '/';
}

/// Adds a character to a text as UTF-8.
void add_utf8(std::string& text, uint32_t c) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80U | ((c >> shift) & 0x3FU)); };
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xC0U | (c >> 6U));
    tail(0);
  } else if (c < 0x10000) {
    text += static_cast<char>(0xE0U | (c >> 12U));
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xF0U | (c >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

class LineReader {
 public:
  LineReader(std::string_view line, int64_t number) : line_(line), number_(number) {}

  PlanLine read() {
    const size_t bad = find_invalid_utf8(line_);
    if (bad != std::string_view::npos) fail(bad, "the line holds a byte that is no UTF-8");
    skip_blanks();
    if (at_end() || rest().starts_with("###") || rest().starts_with("```")) return {};
    if (rest().starts_with("<END_OF_PLAN>")) return {.kind = PlanLine::Kind::kJoin};
    if (std::optional<std::string> thought = thought_of_line()) {
      return {.kind = PlanLine::Kind::kThought, .thought = std::move(*thought)};
    }
    PlanLine result{.kind = PlanLine::Kind::kCall};
    WrittenCall& call = result.call;
    call.id = number_of_task();
    const size_t name_at = at_;
    call.tool = name();
    skip_blanks();
    if (call.tool.empty() || at_end() || line_[at_] != '(') fail_unknown_line();
    ++at_;
    const bool joins = call.tool == "join" || call.tool == "finish";
    if (call.id == 0 && !joins) {
      fail(name_at, fmt::format("the call has no number; write `1. {}(...)`", shown(call.tool, kShownBytes)));
    }
    arguments(call);
    if (joins) {
      if (!call.arguments.empty()) fail(name_at, fmt::format("{}() takes no arguments", call.tool));
      result.kind = PlanLine::Kind::kJoin;
      return result;
    }
    skip_blanks();
    if (!at_end()) {
      fail(at_, fmt::format("`{}` stands after the call; a line holds one call and nothing else",
                            shown(rest(), kShownBytes)));
    }
    return result;
  }

 private:
  [[noreturn]] void fail(size_t at, const std::string& message) const {
    throw PlanError(number_, static_cast<int64_t>(at) + 1, message);
  }

  [[noreturn]] void fail_unknown_line() const {
    throw PlanError(
        number_, 0,
        fmt::format("`{}` is neither a call (`1. tool(...)`), a thought (`Thought: ...`) nor join()",
                    shown(line_, kShownBytes)));
  }

  bool at_end() const { return at_ >= line_.size(); }
  std::string_view rest() const { return line_.substr(at_); }
  void skip_blanks() {
    while (!at_end() && is_blank(line_[at_])) ++at_;
  }
  bool take(char c) {
    if (at_end() || line_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::optional<std::string> thought_of_line() const {
    constexpr std::string_view kWord = "thought";
    if (rest().size() <= kWord.size()) return std::nullopt;
    for (size_t i = 0; i < kWord.size(); ++i) {
      if (std::tolower(static_cast<unsigned char>(rest()[i])) != kWord[i]) return std::nullopt;
    }
    size_t at = kWord.size();
    if (rest()[at] != ':') return std::nullopt;
    ++at;
    while (at < rest().size() && is_blank(rest()[at])) ++at;
    std::string thought(rest().substr(at));
    while (!thought.empty() && is_blank(thought.back())) thought.pop_back();
    return thought;
  }

  /// The digits at `at_` as a number from 1 to kLargestTask.
  int64_t digits() {
    const size_t begin = at_;
    int64_t number = 0;
    while (!at_end() && is_digit(line_[at_])) {
      number = std::min(number * 10 + (line_[at_] - '0'), kLargestTask + 1);
      ++at_;
    }
    if (number < 1 || number > kLargestTask) {
      fail(begin, fmt::format("{} is no number of a task; they go from 1 to {}",
                              shown(line_.substr(begin, at_ - begin), kShownBytes), kLargestTask));
    }
    return number;
  }

  /// `1.`, `1)`, `1:`, `$1 =` or `1 =` and the blanks after it; 0 if the line begins with neither.
  int64_t number_of_task() {
    size_t at = at_;
    if (at < line_.size() && line_[at] == '$') ++at;
    if (at >= line_.size() || !is_digit(line_[at])) return 0;
    at_ = at;
    const int64_t id = digits();
    skip_blanks();
    if (!take('.') && !take('=') && !take(')') && !take(':')) fail_unknown_line();
    skip_blanks();
    return id;
  }

  std::string name() {
    const size_t begin = at_;
    while (!at_end() && in_name(line_[at_])) ++at_;
    return std::string(line_.substr(begin, at_ - begin));
  }

  void arguments(WrittenCall& call) {
    skip_blanks();
    if (at_end() || take(')')) return;
    while (true) {
      const size_t begin = at_;
      std::string key = keyword();
      if (key.empty() && !call.arguments.empty() && !call.arguments.back().first.empty()) {
        fail(begin, "an argument without a name follows one with a name");
      }
      for (const auto& [other, value] : call.arguments) {
        if (!key.empty() && key == other) fail(begin, fmt::format("the argument `{}` is given twice", key));
      }
      call.arguments.emplace_back(std::move(key), value(0));
      skip_blanks();
      if (at_end() || take(')')) return;
      if (!take(',')) {
        fail(at_, fmt::format("`{}` stands where `,` or `)` should", shown(rest(), kShownBytes)));
      }
      skip_blanks();
      if (at_end() || take(')')) return;
    }
  }

  /// The name before `=`, or nothing.
  std::string keyword() {
    const size_t begin = at_;
    size_t at = at_;
    while (at < line_.size() && in_name(line_[at])) ++at;
    if (at == begin || is_digit(line_[begin]) || line_[begin] == '-') return {};
    size_t equals = at;
    while (equals < line_.size() && is_blank(line_[equals])) ++equals;
    if (equals >= line_.size() || line_[equals] != '=') return {};
    at_ = equals + 1;
    skip_blanks();
    return std::string(line_.substr(begin, at - begin));
  }

  Term value(int depth) {
    skip_blanks();
    if (depth > kDeepestJson) fail(at_, fmt::format("lists and objects lie deeper than {}", kDeepestJson));
    if (at_end()) fail(at_, "the line ends where a value should stand");
    const char c = line_[at_];
    if (c == '"' || c == '\'') return string(c);
    if (c == '[') return list(depth);
    if (c == '{') return object(depth);
    if (c == '$') {
      const std::optional<int64_t> id = reference();
      if (!id) fail(at_, "after `$` stands no number of a task");
      return Term::reference(*id);
    }
    if (is_digit(c) || c == '-') return number();
    for (const auto& [word, json] : {std::pair<std::string_view, Json>{"true", true},
                                     {"True", true},
                                     {"false", false},
                                     {"False", false},
                                     {"null", nullptr},
                                     {"None", nullptr}}) {
      if (rest().starts_with(word) && (rest().size() == word.size() || !in_name(rest()[word.size()]))) {
        at_ += word.size();
        return Term::of(json);
      }
    }
    fail(at_, fmt::format("`{}` is no value; strings stand in quotation marks", shown(rest(), kShownBytes)));
  }

  /// `$1` or `${1}`; nothing, and `at_` as it was, for another dollar.
  std::optional<int64_t> reference() {
    const size_t begin = at_;
    ++at_;
    const bool braces = take('{');
    if (at_end() || !is_digit(line_[at_])) {
      at_ = begin;
      return std::nullopt;
    }
    const int64_t id = digits();
    if (braces && !take('}')) fail(begin, "`${` and a number want a `}` after them");
    return id;
  }

  Term string(char quote) {
    const size_t begin = at_++;
    Term text{.kind = Term::Kind::kText};
    std::string literal;
    const auto end_literal = [&] {
      if (!literal.empty()) text.parts.push_back(Term::of(std::exchange(literal, {})));
    };
    while (true) {
      if (at_end()) fail(begin, "the line ends within a string");
      const char c = line_[at_];
      if (c == quote) {
        ++at_;
        break;
      }
      if (c == '\\') {
        escape(literal);
      } else if (c == '$') {
        if (const std::optional<int64_t> id = reference()) {
          end_literal();
          text.parts.push_back(Term::reference(*id));
        } else {
          literal += line_[at_++];
        }
      } else {
        literal += c;
        ++at_;
      }
    }
    if (text.parts.empty()) return Term::of(std::move(literal));
    end_literal();
    if (text.parts.size() == 1) return text.parts.front();  // "$1" alone
    return text;
  }

  uint32_t hexadecimal(size_t begin) {
    uint32_t code = 0;
    if (at_ + 4 > line_.size()) fail(begin, "`\\u` wants four hexadecimal digits after it");
    const char* const first = line_.data() + at_;
    const auto [end, error] = std::from_chars(first, first + 4, code, 16);
    if (error != std::errc() || end != first + 4) fail(begin, "`\\u` wants four hexadecimal digits after it");
    at_ += 4;
    return code;
  }

  void escape(std::string& literal) {
    const size_t begin = at_++;
    if (at_end()) fail(begin, "the line ends within a string");
    const char c = line_[at_++];
    constexpr std::string_view kNames = "\"'\\/$nrtbf";
    constexpr std::string_view kMeanings = "\"'\\/$\n\r\t\b\f";
    const size_t place = kNames.find(c);
    if (place != std::string_view::npos) {
      literal += kMeanings[place];
      return;
    }
    if (c != 'u')
      fail(begin, fmt::format("`\\{}` is no escape of a string; write `\\\\` for a backslash",
                              shown(std::string(1, c), kShownBytes)));
    uint32_t code = hexadecimal(begin);
    if (code >= 0xD800 && code < 0xDC00 && rest().starts_with("\\u")) {
      at_ += 2;
      const uint32_t low = hexadecimal(begin);
      if (low < 0xDC00 || low > 0xDFFF) fail(begin, "half a pair of surrogates stands in a string");
      code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
    } else if (code >= 0xD800 && code <= 0xDFFF) {
      fail(begin, "half a pair of surrogates stands in a string");
    }
    add_utf8(literal, code);
  }

  Term number() {
    const size_t begin = at_;
    while (!at_end() &&
           (is_digit(line_[at_]) || std::string_view("+-.eE").find(line_[at_]) != std::string_view::npos)) {
      ++at_;
    }
    const std::string_view digits = line_.substr(begin, at_ - begin);
    Json parsed = Json::parse(digits, nullptr, false);
    const bool finite = parsed.is_number() && std::isfinite(parsed.get<double>());
    if (!finite || (!at_end() && in_name(line_[at_]))) {
      fail(begin, fmt::format("`{}` is no number", shown(line_.substr(begin), kShownBytes)));
    }
    return Term::of(std::move(parsed));
  }

  /// Whether a list or an object ends, or goes on after a comma.
  bool ends(char closing, size_t begin) {
    skip_blanks();
    if (take(closing)) return true;
    if (at_end()) fail(begin, fmt::format("the line ends before `{}`", closing));
    if (!take(',')) {
      fail(at_, fmt::format("`{}` stands where `,` or `{}` should", shown(rest(), kShownBytes), closing));
    }
    skip_blanks();
    return take(closing);
  }

  /// The JSON value if no part refers to a task, or the term as it is.
  static Term simplified(Term term) {
    for (const Term& part : term.parts) {
      if (part.kind != Term::Kind::kValue) return term;
    }
    return Term::of(substitute(term, [](int64_t) -> const Json& { throw std::logic_error("no reference"); }));
  }

  Term list(int depth) {
    const size_t begin = at_++;
    Term term{.kind = Term::Kind::kList};
    skip_blanks();
    if (take(']')) return Term::of(Json::array());
    do term.parts.push_back(value(depth + 1));
    while (!ends(']', begin));
    return simplified(std::move(term));
  }

  Term object(int depth) {
    const size_t begin = at_++;
    Term term{.kind = Term::Kind::kObject};
    skip_blanks();
    if (take('}')) return Term::of(Json::object());
    do {
      skip_blanks();
      const size_t key_at = at_;
      if (at_end() || (line_[at_] != '"' && line_[at_] != '\'')) fail(at_, "an object's keys are strings");
      const Term key = string(line_[at_]);
      if (key.kind != Term::Kind::kValue) fail(key_at, "an object's key holds no result of a task");
      if (std::find(term.keys.begin(), term.keys.end(), key.value.get<std::string>()) != term.keys.end()) {
        fail(key_at, "an object has the same key twice");
      }
      term.keys.push_back(key.value.get<std::string>());
      skip_blanks();
      if (!take(':')) fail(at_, "`:` should stand after an object's key");
      term.parts.push_back(value(depth + 1));
    } while (!ends('}', begin));
    return simplified(std::move(term));
  }

  std::string_view line_;
  int64_t number_;
  size_t at_ = 0;
};

}  // namespace

PlanLine read_plan_line(std::string_view line, int64_t number) {
  return LineReader(line, number).read();
}

}  // namespace verbatim::agent
