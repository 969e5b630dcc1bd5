#pragma once

#include "agent/run/run_options.h"
#include "verbatim/agent.h"

namespace verbatim::agent {

/// An event as the public interface shows it.
AgentEvent public_event(const RunEvent& event);

}  // namespace verbatim::agent
