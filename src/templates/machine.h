#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <ctime>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "templates/value.h"

namespace verbatim::jinja {

/// Bounds that hold for every template and every rendering.
inline constexpr size_t kLongestSource = size_t{1} << 18;  ///< bytes of a template
inline constexpr int32_t kDeepestSource = 128;             ///< statements and expressions inside each other
inline constexpr int32_t kDeepestEvaluation = 400;         ///< the same, with macros followed
inline constexpr int32_t kDeepestMacros = 32;              ///< macros that call each other
inline constexpr int32_t kDeepestValue = 100;              ///< lists and dictionaries inside each other
inline constexpr int64_t kLongestRange = 100000;           ///< numbers of range()

/// The names that a template may use of the values that it looks up.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<int32_t, Value>> names;  ///< by the number of the name
};

/// What one rendering has to work with: memory, and how much of it and of time is left. Every function that
/// makes values or takes more than a moment tells the Machine first, so a hostile template ends in an error.
class Machine {
 public:
  /// `input_bytes` is the size of the variables, with which the bounds grow; `now` is what strftime_now()
  /// shows.
  Machine(size_t input_bytes, std::time_t now);

  /// Throws Error(kBadInput) with the line of the template that is being evaluated.
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("the chat template, line {}: {}", line, fmt::format(format, std::forward<Args>(args)...));
  }

  /// Counts steps of evaluation.
  void step(size_t count = 1) {
    if (count > steps_left_) fail("it takes too many steps");
    steps_left_ -= count;
  }
  /// Counts the time that it takes to look at so many bytes.
  void scan(size_t bytes) { step(1 + bytes / 256); }
  /// Counts memory, which stays counted until the rendering ends.
  void take(size_t bytes) {
    if (bytes > bytes_left_) fail("it makes too much text or too many values");
    bytes_left_ -= bytes;
  }
  /// Refuses a text of so many bytes if that is too long.
  void check_length(size_t bytes) const {
    if (bytes > longest_) fail("it makes a text of more than {} bytes", longest_);
  }

  /// A value that is a text, counted.
  Value text(TracedText text);
  Value text(std::string bytes, bool from_template) {
    return text(TracedText(std::move(bytes), from_template));
  }
  List* list(bool tuple = false);
  List* list(std::vector<Value> items, bool tuple = false);
  void append(List& list, Value value);
  Dict* dict();
  void set(Dict& dict, const Value& key, Value value);
  Callable* callable(Callable callable);
  Loop* loop();
  Scope* scope(Scope* parent);

  std::time_t now() const { return now_; }

  /// Counts how many evaluations are inside each other while it lives.
  class Depth {
   public:
    explicit Depth(Machine& machine) : machine_(machine) {
      if (machine_.depth_ >= kDeepestEvaluation) machine_.fail("its evaluation nests too deeply");
      ++machine_.depth_;
    }
    ~Depth() { --machine_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Machine& machine_;
  };

  int32_t line = 1;  ///< of the template, of what is being evaluated

 private:
  size_t steps_left_;
  size_t bytes_left_;
  size_t longest_;
  std::time_t now_;
  int32_t depth_ = 0;
  // Lists and dictionaries may hold each other, so none owns another.
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Callable> callables_;
  std::deque<Loop> loops_;
  std::deque<Scope> scopes_;
};

/// The arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;

  /// The argument at a place or of a name; nullptr if it is absent.
  const Value* find(size_t place, std::string_view name) const;
};

/// What the arguments lack or have too much of would be guessed at if nobody looked: throws unless there are
/// at least `least` and at most `most` arguments.
void check_count(const Machine& machine, std::string_view callee, const Arguments& arguments, size_t least,
                 size_t most);
/// An argument as an integer; `otherwise` if it is absent or none.
int64_t integer_argument(const Machine& machine, const Value* argument, int64_t otherwise);
/// An argument that must be a text.
const TracedText& text_argument(const Machine& machine, const Value* argument, std::string_view callee);

}  // namespace verbatim::jinja
