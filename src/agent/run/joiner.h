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

/// Reads `Thought: ... Action: Finish(answer)` or `Replan(reason)`; the parenthesis that ends it is the one
/// that matches, or else the last one, as answers hold parentheses. Nothing if it is neither.
std::optional<JoinerDecision> read_joiner(const std::string& reply);

}  // namespace verbatim::agent
