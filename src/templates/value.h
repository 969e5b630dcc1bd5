#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "templates/traced_text.h"

namespace verbatim::jinja {

struct List;
struct Dict;
struct Callable;
struct Loop;
struct Macro;
struct Scope;

/// What a name stands for that has no value.
struct Undefined {};
/// Python's None.
struct None {};

using TextPointer = std::shared_ptr<const TracedText>;

/// A value of the language. Lists, dictionaries, callables and loops belong to the Heap of the rendering and
/// are shared, as in Python; all else is a value.
using Value =
    std::variant<Undefined, None, bool, int64_t, double, TextPointer, List*, Dict*, Callable*, Loop*>;

/// A list or a tuple.
struct List {
  std::vector<Value> items;
  bool tuple = false;
  bool from_data = false;  ///< it was in the variables, so its written form is data
};

/// A dictionary or a namespace, which keep the order of insertion.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  bool is_namespace = false;
  bool from_data = false;

  /// The value of a key that is a text; nullptr if there is none.
  const Value* find(std::string_view key) const;
  /// The value of a key; nullptr if there is none.
  const Value* find(const Value& key) const;
  /// Adds an entry, or replaces the value of the one with this key.
  void set(const Value& key, Value value);

 private:
  const Value* find_name(const std::string& name) const;
  std::unordered_map<std::string, size_t> places_;  // by key_name(), once there are many entries
};

/// Something that can be called: a macro, the body of a call block, a function of the language, or a method
/// of a value.
struct Callable {
  enum class Kind { kMacro, kFunction, kMethod };
  Kind kind = Kind::kFunction;
  std::string_view name = {};    ///< of the function or method; lives as long as the program
  Value self = {};               ///< whose method it is
  const Macro* macro = nullptr;  ///< lives as long as the program
  Scope* scope = nullptr;        ///< where the macro was defined
};

/// What a template sees of the loop that it is in.
struct Loop {
  const List* items = nullptr;
  size_t index = 0;
  int64_t depth = 1;
  Value last_seen = {};  ///< what loop.changed() was asked about
  bool seen = false;
};

inline TextPointer make_text(TracedText text) {
  return std::make_shared<const TracedText>(std::move(text));
}
inline TextPointer make_text(std::string bytes, bool from_template) {
  return make_text(TracedText(std::move(bytes), from_template));
}

template <typename T>
bool is(const Value& value) {
  return std::holds_alternative<T>(value);
}

/// The text of a value that is one; nullptr otherwise.
inline const TracedText* text_of(const Value& value) {
  const auto* pointer = std::get_if<TextPointer>(&value);
  return pointer == nullptr ? nullptr : pointer->get();
}

/// Python's truth of a value.
bool truth(const Value& value);
/// A number, or a Boolean as 0 or 1.
bool is_number(const Value& value);
double as_double(const Value& value);
/// The name of a value's type for errors.
std::string_view type_name(const Value& value);

}  // namespace verbatim::jinja
