#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/json.h"

namespace verbatim::agent {

/// A tool as models see it.
struct ToolDeclaration {
  std::string name;
  std::string description = {};
  /// The JSON schema of its arguments, an object's. Positional arguments follow the order of its properties.
  Json parameters = {{"type", "object"}, {"properties", Json::object()}};
};

/// The declaration with a name, or null.
const ToolDeclaration* find_tool(const std::vector<ToolDeclaration>& tools, std::string_view name);

}  // namespace verbatim::agent
