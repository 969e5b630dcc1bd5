#pragma once

#include <string_view>

#include "structure/node.h"

namespace verbatim {

/// The texts of JSON values that a schema allows; see Structure::json_schema().
NodePointer json_schema_node(std::string_view schema);
/// The texts of all JSON objects.
NodePointer json_object_node();

}  // namespace verbatim
