#pragma once

#include <string_view>

#include "templates/machine.h"
#include "templates/value.h"

namespace verbatim::jinja {

/// A filter: what it makes of a value. The functions may throw as Machine::fail() does.
using Filter = Value (*)(Machine&, const Value& input, const Arguments&);
/// A test: whether it holds for a value.
using Test = bool (*)(Machine&, const Value& input, const Arguments&);

/// The filter of a name; nullptr if there is none.
Filter find_filter(std::string_view name);
/// The test of a name; nullptr if there is none.
Test find_test(std::string_view name);

/// The library's own spelling of the name of a function that a template can call ("range"); empty if there
/// is none.
std::string_view find_function(std::string_view name);
Value call_function(Machine& machine, std::string_view name, const Arguments& arguments);

/// The library's own spelling of the name of a method that a value has; empty if it has no such method.
std::string_view find_method(const Value& self, std::string_view name);
Value call_method(Machine& machine, const Value& self, std::string_view name, const Arguments& arguments);

}  // namespace verbatim::jinja
