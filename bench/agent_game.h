#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/model/scripted_endpoint.h"

namespace verbatim::bench {

/// The hands of four numbers from 1 to 13 that make 24, found by search.
std::vector<std::string> solvable_hands();

/// What one hand came to.
struct GamePlayed {
  bool solved = false;
  double seconds = 0;
  double side_by_side = 0;  ///< of a tree: seconds if the calls of each round ran side by side
  std::string answer;
  int64_t rounds = 0;
};

/// Plays the Game of 24 by a tree of thoughts (thesis, D.7): three plans of proposers, evaluators and a
/// choice of the five best states, each made from the states of the one before. Proposers and evaluators are
/// exact, and take the time that a model of the given rates would take to write what they say. `concurrency`
/// 1 makes one call at a time.
GamePlayed play_24(const std::string& hand, agent::ScriptedRates rates, int concurrency);

/// Plays the game by the Tree of Thoughts as it was before LLMCompiler: the same proposers, evaluators and
/// choices, one after the other, and neither a planner nor a joiner.
GamePlayed tree_of_thoughts_24(const std::string& hand, agent::ScriptedRates rates);

/// Plays a hundred hands, evenly from all that can be solved, in each way, and prints what they took.
void measure_games(agent::ScriptedRates rates, bool json);

}  // namespace verbatim::bench
