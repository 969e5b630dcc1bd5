#include "agent/tools/tool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

std::string ToolSet::refusal(const std::string& name) const {
  const bool plain = !name.empty() && name.size() <= 128 &&
                     std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
                              c == '.' || c == '/';
                     });
  if (!plain) {
    return fmt::format("`{}` is no name of a tool: up to 128 letters, digits, `_`, `-`, `.` and `/`",
                       shown(name, kShownBytes));
  }
  if (name == "join" || name == "finish")
    return fmt::format("no tool may be called `{}`: plans end with it", name);
  return find(name) ? fmt::format("there are two tools called `{}`", name) : std::string();
}

void ToolSet::add(ToolEntry entry) {
  const std::string why = refusal(entry.tool->declaration().name);
  if (!why.empty()) throw Error(ErrorKind::kUsage, why);
  entries_.push_back(std::move(entry));
}

const ToolEntry* ToolSet::find(std::string_view name) const {
  for (const ToolEntry& entry : entries_) {
    if (entry.tool->declaration().name == name) return &entry;
  }
  return nullptr;
}

std::vector<ToolDeclaration> ToolSet::declarations() const {
  std::vector<ToolDeclaration> declarations;
  for (const ToolEntry& entry : entries_) {
    if (entry.policy != Policy::kDeny) declarations.push_back(entry.tool->declaration());
  }
  return declarations;
}

}  // namespace verbatim::agent
