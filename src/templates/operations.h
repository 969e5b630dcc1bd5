#pragma once

#include "templates/machine.h"
#include "templates/syntax.h"

namespace verbatim::jinja {

/// Python's == of two values.
bool equal(Machine& machine, const Value& a, const Value& b);
/// Python's < of two values. Throws as Machine::fail() does for types that have no order.
bool less(Machine& machine, const Value& a, const Value& b);
/// Whether `item` is in a list, is a key of a dictionary, or is a part of a text.
bool contains(Machine& machine, const Value& whole, const Value& item);
/// The result of an operator between two values.
Value operate(Machine& machine, Operator meaning, const Value& a, const Value& b);
Value negate(Machine& machine, const Value& value);

/// What a loop over the value sees: the items of a list, the keys of a dictionary, the characters of a text.
List* items_of(Machine& machine, const Value& value);
/// The attribute that `.name` finds: a method, an entry of a dictionary, a property of a loop; undefined if
/// there is none. Throws for the attribute of something undefined.
Value attribute_of(Machine& machine, const Value& value, std::string_view name);
/// What `[key]` finds; undefined if there is nothing.
Value element_of(Machine& machine, const Value& value, const Value& key);
/// What `[begin:end:step]` finds; none or undefined bounds are absent.
Value slice_of(Machine& machine, const Value& value, const Value& begin, const Value& end, const Value& step);

/// Where a text begins in another, from an offset on; npos if nowhere.
size_t find_text(std::string_view text, std::string_view part, size_t from = 0);
/// The number of characters of valid UTF-8.
int64_t count_characters(std::string_view text);
/// The offset of a character of valid UTF-8; the size of the text if it has no more than `index` characters.
size_t offset_of_character(std::string_view text, int64_t index);

}  // namespace verbatim::jinja
