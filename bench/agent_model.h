#pragma once

#include <string>

#include "agent/loop/loop.h"
#include "agent/model/scripted_endpoint.h"
#include "agent/run/run_options.h"
#include "agent/tools/tool.h"
#include "bench/agent_questions.h"

namespace verbatim::bench {

/// What a scripted model says to a question under a strategy, given what it is asked.
std::string scripted_reply(const AgentQuestion& question, agent::RunStrategy strategy,
                           const agent::ModelRequest& request);
/// The plan of a question as the model writes it.
std::string scripted_plan(const AgentQuestion& question);
/// Examples for the prompt: for the compiler plans alone, and for the others with what tools answered, as
/// both need them.
std::string scripted_examples(const std::vector<AgentQuestion>& questions, size_t count,
                              agent::RunStrategy strategy);

/// How long the tools take.
struct AgentTimes {
  double search = 0.61;   ///< seconds, the mean
  double slowest = 1.13;  ///< the mean of the slowest of eight
  double math = 2.0;
};

/// The seconds of one call: a shifted exponential distribution has the mean of one and of the slowest of
/// eight that were measured (thesis, D.2); which call gets what is decided by its argument.
double tool_seconds(const AgentTimes& times, const std::string& tool, const std::string& argument);
/// A tool that answers after that time.
std::shared_ptr<agent::Tool> timed_tool(agent::Loop& loop, const std::string& name, AgentTimes times);

}  // namespace verbatim::bench
