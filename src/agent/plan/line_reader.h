#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/plan/term.h"

namespace verbatim::agent {

/// A call as a line of a plan writes it, before anything is known of its tool.
struct WrittenCall {
  int64_t id = 0;    ///< 0: the line has none, which only `join()` may do without
  std::string tool;  ///< its name
  /// The arguments; those by position have an empty name.
  std::vector<std::pair<std::string, Term>> arguments;
};

/// What a line of a plan is.
struct PlanLine {
  enum class Kind : uint8_t {
    kBlank,    ///< nothing, or a mark around the plan: ``` or ###
    kThought,  ///< `Thought: ...`
    kCall,     ///< `1. tool(...)`, or `$1 = tool(...)`
    kJoin,     ///< `join()`, `finish()` or <END_OF_PLAN>, whatever follows it
  };
  Kind kind = Kind::kBlank;
  std::string thought = {};
  WrittenCall call = {};
};

/// Reads one line without its end. Throws PlanError, which names `number` as the line.
///
/// Values are JSON, and Python's: strings in '...' as well, True, False and None, a comma before the end of a
/// list. `$1` or `${1}` is the result of task 1, alone or within a string; `\$` in a string is a dollar. The
/// last parenthesis may be missing.
PlanLine read_plan_line(std::string_view line, int64_t number);

/// The largest number of a task.
inline constexpr int64_t kLargestTask = 99'999;

}  // namespace verbatim::agent
