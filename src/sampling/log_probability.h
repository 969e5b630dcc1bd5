#pragma once

#include <cstdint>
#include <span>

#include "verbatim/logprobs.h"

namespace verbatim {

/// Scores the token that followed a row of logits, and names the `top` likeliest ones (0 to
/// kMostTopLogprobs). The result depends on the logits alone, through operations whose order is always the
/// same. A logit of NaN counts as minus infinity; beside plus infinity every finite logit has the probability
/// zero. Throws Error(kBadInput) when no logit is above minus infinity.
ScoredToken score_token(std::span<const float> logits, int32_t token, int32_t top);

/// The list that the scores of generated tokens are added to; a sink without a list ignores them.
struct ScoreSink {
  std::vector<ScoredToken>* scores = nullptr;  ///< not owned; null: the caller wants no scores
  int32_t top = 0;                             ///< the number of likeliest tokens in each score

  /// Adds the score of a token that is appended to the sequence.
  void add(std::span<const float> logits, int32_t token) const {
    if (scores != nullptr) scores->push_back(score_token(logits, token, top));
  }
};

}  // namespace verbatim
