#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/exec/task.h"
#include "agent/run/run_options.h"
#include "agent/tools/declaration.h"

namespace verbatim::agent {

/// The tools as models read them: name, parameters with their types, and description of each.
std::string described(const std::vector<ToolDeclaration>& tools);

/// What the model is told before anything else: the tools, how to write a plan or an action, and for the
/// compiler, with a shared prompt, how to answer.
std::string system_prompt(const RunOptions& options, const std::vector<ToolDeclaration>& tools);

/// What a joiner with a prompt of its own is told.
std::string joiner_prompt();

/// Asks the joiner: what tasks came to, and what to write now. In the last round there is no other plan.
std::string joiner_request(const std::string& results, bool last);
/// Asks the planner for another plan.
std::string replan_request(const std::string& results, const std::string& reason, int64_t next_id);
/// Asks for the rest of a plan after something in it was wrong.
std::string correction_request(const std::string& error, int64_t next_id);

/// The tasks with what they came to, a line or more each. What a tool answered stands indented, so that it
/// cannot be taken for a line of the plan.
std::string results_of(const std::map<int64_t, Task>& tasks, int64_t from_id);

}  // namespace verbatim::agent
