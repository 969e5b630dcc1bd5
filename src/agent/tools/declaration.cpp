#include "agent/tools/declaration.h"

namespace verbatim::agent {

const ToolDeclaration* find_tool(const std::vector<ToolDeclaration>& tools, std::string_view name) {
  for (const ToolDeclaration& tool : tools) {
    if (tool.name == name) return &tool;
  }
  return nullptr;
}

}  // namespace verbatim::agent
