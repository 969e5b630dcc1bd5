#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "agent/run/run_options.h"
#include "agent/tools/declaration.h"
#include "verbatim/structure.h"

namespace verbatim::agent {

/// The plans that PlanParser takes, or most of them: up to `most` calls, numbered from `first`, of the tools,
/// which are writable(), with arguments by their schemas, and references to the tasks of `known` and of
/// earlier lines; then `join()`. Not among them are thoughts, and strings with dollars, backslashes or more
/// than a hundred characters.
Structure plan_structure(const std::vector<ToolDeclaration>& tools, const std::set<int64_t>& known,
                         int64_t first, int64_t most);

/// A joiner's reply: a thought, and the answer or, if `may_replan`, what is missing.
Structure joiner_structure(bool may_replan);

/// A turn of the other strategies: a thought, and calls (one, or for `parallel` up to eight) or the answer.
Structure turn_structure(const std::vector<ToolDeclaration>& tools, const std::set<int64_t>& known,
                         bool parallel);

}  // namespace verbatim::agent
