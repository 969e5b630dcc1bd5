#pragma once

#include <optional>
#include <string>

#include "templates/machine.h"

namespace verbatim::jinja {

/// A value as Python's str() writes it. Text keeps its origins; lists and dictionaries are data as soon as
/// anything in them is.
TracedText written(Machine& machine, const Value& value);

/// How JSON is written: as Python's json.dumps() does with these arguments.
struct JsonStyle {
  std::optional<int64_t> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool ascii = false;
  bool sorted = false;
};

/// A value as JSON. Throws as Machine::fail() does for what JSON cannot say.
TracedText written_json(Machine& machine, const Value& value, const JsonStyle& style);

/// Reads the variables of a template. Throws Error(kBadInput) unless the text is a JSON object.
Dict* read_variables(Machine& machine, std::string_view json);

/// A number as Python writes it: the shortest that reads back the same.
std::string python_number(double value);

}  // namespace verbatim::jinja
