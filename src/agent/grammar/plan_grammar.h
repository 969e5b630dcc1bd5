#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/run/run_options.h"
#include "agent/tools/declaration.h"
#include "verbatim/structure.h"

namespace verbatim::agent {

/// The most calls of a plan that a run asks for.
inline constexpr int64_t kMostPlannedCalls = 16;

/// The plans that PlanParser takes, or most of them: up to `most` calls, numbered from `first`, of the tools,
/// which are writable(), with arguments by their schemas, and references to the tasks of `known` and of
/// earlier lines; then `join()`. Not among them are thoughts, and strings with dollars, backslashes or more
/// than a hundred characters. With a `room` of tokens every plan ends within it: there are fewer calls, and
/// where that leaves less than four, shorter strings and lists. The one exception is a room that not even one
/// short call of each tool is sure to fit in; plans then have one call, and some may be longer than the room.
/// Plans have `least` calls at least, as far as there are tools and `most` and the room allow.
Structure plan_structure(const std::vector<ToolDeclaration>& tools, const std::set<int64_t>& known,
                         int64_t first, int64_t most, std::optional<int64_t> room = std::nullopt,
                         size_t least = 0);

/// A joiner's reply: a thought, and the answer or, if `may_replan`, what is missing. With a `room` of tokens
/// both are short enough to fit, as long as 64 tokens are there.
Structure joiner_structure(bool may_replan, std::optional<int64_t> room = std::nullopt);

/// A turn of the other strategies: a thought, and calls (one, or for `parallel` up to eight) or the answer.
/// With a `room` of tokens every turn ends within it as every plan does: thought and answer are shorter,
/// calls fewer, and at last strings and lists shorter; a room of less than one short call and 64 tokens
/// beside it is the exception.
Structure turn_structure(const std::vector<ToolDeclaration>& tools, const std::set<int64_t>& known,
                         bool parallel, std::optional<int64_t> room = std::nullopt);

}  // namespace verbatim::agent
