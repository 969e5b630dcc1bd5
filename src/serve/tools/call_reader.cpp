#include "serve/tools/call_reader.h"

#include <nlohmann/json.hpp>

namespace verbatim::serve {
namespace {

/// The longest key or name that is looked at, in bytes as written.
constexpr size_t kLongestWord = 1024;

bool is_arguments(const std::string& key) {
  return key == "arguments" || key == "parameters";
}

/// The text of a JSON string; false if it is none.
bool unquote(const std::string& quoted, std::string& text) {
  const nlohmann::json value = nlohmann::json::parse(quoted, nullptr, false);
  if (!value.is_string()) return false;
  text = value.get<std::string>();
  return true;
}

}  // namespace

JsonExtent::Step JsonExtent::take(char c) {
  if (string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      string_ = false;
      if (depth_ == 0) return Step::kLast;
    }
    return Step::kInside;
  }
  switch (c) {
    case '"':
      if (depth_ == 0 && begun_) return Step::kBad;
      string_ = true;
      break;
    case '{':
    case '[':
      if (depth_ == kDeepest || (depth_ == 0 && begun_)) return Step::kBad;
      lists_ = lists_ << 1 | (c == '[' ? 1U : 0U);
      ++depth_;
      break;
    case '}':
    case ']':
      if (depth_ == 0) return begun_ ? Step::kBehind : Step::kBad;
      if (((lists_ & 1U) != 0) != (c == ']')) return Step::kBad;
      lists_ >>= 1;
      if (--depth_ == 0) return Step::kLast;
      break;
    case ',':
    case ':':
    case ' ':
    case '\n':
    case '\t':
    case '\r':
      if (depth_ == 0) return begun_ ? Step::kBehind : Step::kBad;
      break;
    default:
      break;
  }
  begun_ = true;
  return Step::kInside;
}

CallReader::Part CallReader::take(char c) {
  switch (state_) {
    case State::kInKey:
      return take_key(c);
    case State::kInName:
      return take_name(c);
    case State::kInArguments:
      return take_arguments(c);
    case State::kInOther:
      switch (extent_.take(c)) {
        case JsonExtent::Step::kInside:
          return Part::kForm;
        case JsonExtent::Step::kLast:
          state_ = State::kNext;
          return Part::kForm;
        case JsonExtent::Step::kBehind:
          state_ = State::kNext;
          break;
        case JsonExtent::Step::kBad:
          return Part::kBad;
      }
      break;
    default:
      break;
  }
  if (is_json_space(c)) return Part::kForm;
  switch (state_) {
    case State::kBegin:
      if (c != '{') return Part::kBad;
      state_ = State::kFirstKey;
      return Part::kForm;
    case State::kFirstKey:
    case State::kKey:
      if (c != '"') return Part::kBad;
      word_ = c;
      extent_ = {};
      extent_.take(c);
      state_ = State::kInKey;
      return Part::kForm;
    case State::kColon:
      if (c != ':') return Part::kBad;
      state_ = State::kValue;
      return Part::kForm;
    case State::kValue:
      return take_value(c);
    default:
      return take_next(c);
  }
}

CallReader::Part CallReader::take_key(char c) {
  if (word_.size() == kLongestWord) return Part::kBad;
  word_ += c;
  if (extent_.take(c) != JsonExtent::Step::kLast) return Part::kForm;
  if (!unquote(word_, key_)) return Part::kBad;
  state_ = State::kColon;
  return Part::kForm;
}

CallReader::Part CallReader::take_value(char c) {
  extent_ = {};
  const JsonExtent::Step step = extent_.take(c);
  if (step != JsonExtent::Step::kInside) return Part::kBad;
  if (key_ == "name") {
    if (c != '"' || !name_.empty()) return Part::kBad;
    word_ = c;
    state_ = State::kInName;
    return Part::kForm;
  }
  if (!is_arguments(key_)) {
    state_ = State::kInOther;
    return Part::kForm;
  }
  if (c != '{' || arguments_done_) return Part::kBad;
  state_ = State::kInArguments;
  if (!name_.empty()) return Part::kBeginsArguments;
  early_arguments_ = c;
  return Part::kForm;
}

CallReader::Part CallReader::take_name(char c) {
  if (word_.size() == kLongestWord) return Part::kBad;
  word_ += c;
  if (extent_.take(c) != JsonExtent::Step::kLast) return Part::kForm;
  if (!unquote(word_, name_) || name_.empty()) return Part::kBad;
  state_ = State::kNext;
  return Part::kName;
}

CallReader::Part CallReader::take_arguments(char c) {
  const JsonExtent::Step step = extent_.take(c);
  if (step == JsonExtent::Step::kBad) return Part::kBad;
  const bool last = step == JsonExtent::Step::kLast;
  if (last) {
    arguments_done_ = true;
    state_ = State::kNext;
  }
  if (!early_arguments_.empty()) {
    early_arguments_ += c;
    return Part::kForm;
  }
  return last ? Part::kEndsArguments : Part::kArguments;
}

CallReader::Part CallReader::take_next(char c) {
  if (c == ',') {
    state_ = State::kKey;
    return Part::kForm;
  }
  return c == '}' && complete() ? Part::kEnd : Part::kBad;
}

}  // namespace verbatim::serve
