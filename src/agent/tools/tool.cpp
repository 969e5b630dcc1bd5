#include "agent/tools/tool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

void ToolSet::add(ToolEntry entry) {
  const std::string& name = entry.tool->declaration().name;
  const bool plain = !name.empty() && name.size() <= 128 &&
                     std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
                              c == '.' || c == '/';
                     });
  if (!plain) {
    throw Error(ErrorKind::kUsage,
                fmt::format("`{}` is no name of a tool: up to 128 letters, digits, `_`, `-`, `.` and `/`",
                            shown(name, kShownBytes)));
  }
  if (name == "join" || name == "finish") {
    throw Error(ErrorKind::kUsage, fmt::format("no tool may be called `{}`: plans end with it", name));
  }
  if (find(name)) throw Error(ErrorKind::kUsage, fmt::format("there are two tools called `{}`", name));
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
