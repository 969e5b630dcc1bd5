#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace verbatim::bench {

/// A call that answers part of a question, and the calls whose results it uses, from 1.
struct AgentStep {
  std::string tool;      ///< "search" or "math"
  std::string argument;  ///< as a plan writes it, without quotation marks
  std::vector<int64_t> inputs = {};
};

/// A question of a public set with the calls that answer it, which a rule makes of its words: there is no
/// large model here that could.
struct AgentQuestion {
  std::string text;
  std::string answer;
  int64_t branch = 0;  ///< searches that can run side by side
  std::vector<AgentStep> steps;
};

enum class AgentSet { kHotpot, kMovies, kParallel };

/// The questions of a set, from the files of github.com/SqueezeAILab/LLMCompiler's `datasets/`. Throws
/// Error(kBadInput).
std::vector<AgentQuestion> agent_questions(AgentSet set, const std::filesystem::path& folder);

}  // namespace verbatim::bench
