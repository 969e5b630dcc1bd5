#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace verbatim::serve {

/// Finds the end of a JSON value that arrives byte by byte. It follows strings, escapes and brackets and
/// leaves the rest of the grammar to whoever parses the whole.
class JsonExtent {
 public:
  enum class Step {
    kInside,  ///< the byte belongs to the value, which goes on
    kLast,    ///< the byte is the value's last one
    kBehind,  ///< the value ended before this byte
    kBad,     ///< no value: brackets that do not match or lie too deep
  };
  /// Takes in the next byte; the first one must be no white space.
  Step take(char c);

 private:
  static constexpr int kDeepest = 64;

  uint64_t lists_ = 0;  // one bit per open bracket, the innermost lowest: whether it is a list's
  int depth_ = 0;
  bool string_ = false;
  bool escaped_ = false;
  bool begun_ = false;
};

/// Reads the JSON object of one call, byte by byte: its name and its arguments, in any order and among other
/// members.
class CallReader {
 public:
  enum class Part {
    kForm,             ///< the byte belongs to the object's form
    kName,             ///< the byte completes the value of `name`, which name() gives
    kBeginsArguments,  ///< the byte is the first one of the arguments of a call whose name is known
    kArguments,        ///< the byte is a further one
    kEndsArguments,    ///< the byte is the last one
    kEnd,              ///< the byte ends the object
    kBad,              ///< the byte cannot stand here
  };
  Part take(char c);

  /// Whether anything but white space came.
  bool begun() const { return state_ != State::kBegin; }
  const std::string& name() const { return name_; }
  /// The arguments, if they came before the name; they were not told byte by byte then.
  const std::string& early_arguments() const { return early_arguments_; }
  /// Whether the arguments are complete, wherever they stood.
  bool complete() const { return !name_.empty() && arguments_done_; }

 private:
  enum class State {
    kBegin,
    kFirstKey,
    kKey,
    kInKey,
    kColon,
    kValue,
    kInName,
    kInArguments,
    kInOther,
    kNext
  };

  Part take_key(char c);
  Part take_value(char c);
  Part take_name(char c);
  Part take_arguments(char c);
  Part take_next(char c);

  State state_ = State::kBegin;
  JsonExtent extent_;
  std::string word_;  // the key or the name that is being read, with its quotation marks
  std::string key_;
  std::string name_;
  std::string early_arguments_;
  bool arguments_done_ = false;
};

/// Whether a byte is white space of JSON.
inline bool is_json_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

}  // namespace verbatim::serve
