#pragma once

#include <functional>
#include <string>

#include "structure/json_nodes.h"

namespace verbatim {

/// The types of JSON Schema that the `type` of a schema allows, each by its name: "integer" beside "number"
/// only where numbers are limited to integers. All types where there is no `type`. Throws Error(kBadInput),
/// naming `place`, when it is malformed.
std::vector<std::string> schema_types(const OrderedJson& schema, const std::string& place);

/// Whether a keyword only tells people something.
bool is_annotation(std::string_view keyword);

/// The number of values of which a JSON value is made.
size_t values_in(const OrderedJson& json);
/// What merged_schemas() takes, in copied values. Finding the names of two schemas in each other counts too.
size_t merge_work(const OrderedJson& a, const OrderedJson& b);

/// A schema that allows what both allow: `false` where their types or lists of values have none in common.
/// Throws Error(kBadInput), naming `place`, where two keywords cannot
/// be made one.
OrderedJson merged_schemas(const OrderedJson& a, const OrderedJson& b, const std::string& place);

}  // namespace verbatim
