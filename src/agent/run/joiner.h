#pragma once

#include <optional>
#include <string>

namespace verbatim::agent {

/// What a joiner decided.
struct JoinerDecision {
  std::string thought = {};
  bool finish = false;
  std::string text = {};  ///< the answer, or what is missing
};

/// Reads a line `Thought: ...` and a line `Action: Finish(answer)` or `Action: Replan(reason)`; what stands
/// elsewhere in a line is no such mark, as thoughts quote. The parenthesis that ends the action is the one
/// that matches, or else the last one, as answers hold parentheses. Nothing if there is neither action.
std::optional<JoinerDecision> read_joiner(const std::string& reply);

}  // namespace verbatim::agent
