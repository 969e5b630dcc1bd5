#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/grammar/bounded.h"
#include "agent/tools/declaration.h"

namespace verbatim::agent {

/// Tools whose calls can be held to their schemas.
struct WritableTools {
  std::vector<ToolDeclaration> tools;
  /// A line for each tool that cannot, and for each argument that is never given, with the reason.
  std::vector<std::string> left_out;
};

/// Parts the tools whose every call by call_structure() is one that PlanParser takes from those whose schemas
/// say what no structure does (`allOf`, lists and objects that lie deep in each other, long strings), or are
/// too large.
WritableTools writable(const std::vector<ToolDeclaration>& tools);

/// How large a call's values get where its schema asks for no more.
struct CallLimits {
  int characters = 100;  ///< of a string
  int elements = 8;      ///< of a list
};

/// A call of a tool, from its name to the parenthesis, with references to the tasks `ids`, which rise. Throws
/// Error(kBadInput) for a tool that is not writable().
Bounded call_structure(const ToolDeclaration& tool, const std::vector<int64_t>& ids,
                       const CallLimits& limits = {});

}  // namespace verbatim::agent
