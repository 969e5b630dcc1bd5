#include "serve/tools/tool_list.h"

namespace verbatim::serve {
namespace {

bool has_tool(const std::vector<Tool>& tools, const std::string& name) {
  return std::any_of(tools.begin(), tools.end(), [&](const Tool& tool) { return tool.name == name; });
}

bool is_name_sign(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

}  // namespace

std::vector<Fields> tool_fields(const Fields& fields, FieldTable table, size_t most) {
  const Json* const tools = fields.find("tools");
  if (tools != nullptr && tools->size() > most) {
    fields.refuse("tools", fmt::format("must be {} at most", most), "invalid_value");
  }
  return fields.objects("tools", table);
}

void add_tool(std::vector<Tool>& tools, Tool tool, const Fields& fields, size_t longest) {
  const std::string& name = tool.name;
  if (name.empty() || name.size() > longest || !std::all_of(name.begin(), name.end(), is_name_sign)) {
    fields.refuse("name", fmt::format("must be 1 to {} letters, digits, underscores and dashes", longest),
                  "invalid_value");
  }
  if (has_tool(tools, name)) fields.refuse("name", "is the name of another tool too", "invalid_value");
  tools.push_back(std::move(tool));
}

ToolChoice named_choice(const std::vector<Tool>& tools, const Fields& fields) {
  const std::optional<std::string> name = fields.text("name");
  if (!name) fields.refuse("name", "is missing", "missing_required_parameter");
  if (!has_tool(tools, *name)) fields.refuse("name", "is the name of none of the tools", "invalid_value");
  return {.kind = ToolChoice::Kind::kNamed, .name = *name};
}

}  // namespace verbatim::serve
