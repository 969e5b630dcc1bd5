#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/filters.h"
#include "verbatim/sampling.h"

namespace verbatim {

/// Chooses tokens: argmax(filtered logits / temperature + gumbel(seed, position, token)). The noise comes
/// from a counter-based generator, so a drafter and a verifier that look at the same position see the same
/// noise, and a drafted token is kept exactly when it is the token that plain sampling would have produced.
class Sampler {
 public:
  /// Throws Error(kUsage) for settings outside their range, naming the setting.
  explicit Sampler(const SamplingOptions& options);

  /// The token at `position` of a sequence (counted from 0), from the logits of the position before it.
  /// `history` holds the tokens of positions 0 .. position - 1 (only the repetition penalty reads it). Ties
  /// go to the smaller token; NaN counts as minus infinity. Throws Error(kBadInput) when no logit is above
  /// minus infinity. Does not allocate after the first call with a vocabulary of that size.
  int32_t sample(std::span<const float> logits, int64_t position, std::span<const int32_t> history);

  const SamplingOptions& options() const { return options_; }

 private:
  std::span<const float> penalized(std::span<const float> logits, std::span<const int32_t> history);

  SamplingOptions options_;
  std::vector<float> penalized_;
  std::vector<Candidate> candidates_;
};

}  // namespace verbatim
