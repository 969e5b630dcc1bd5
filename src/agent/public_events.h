#pragma once

#include <map>

#include "agent/exec/task.h"
#include "agent/run/run_options.h"
#include "verbatim/agent.h"

namespace verbatim::agent {

/// An event of a run as the public interface has it.
AgentEvent public_event(const RunEvent& event);

/// The outcome of a run, in which tools were called for `calls` tasks, as the public interface has it.
AgentAnswer public_answer(const RunResult& result, int64_t calls);

/// The tasks for which a tool was called.
int64_t calls_of(const std::map<int64_t, Task>& tasks);

}  // namespace verbatim::agent
