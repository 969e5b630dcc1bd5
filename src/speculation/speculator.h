#pragma once

#include <optional>

#include "speculation/self_drafter.h"
#include "verbatim/generate.h"

namespace verbatim {

/// Advances a sequence step by step: propose, verify in one pass, keep the drafts that equal what plain
/// decoding would have produced, and add the verifier's own next token (`exact` acceptance, design §5).
/// Without a drafter a step is a step of plain decoding.
class Speculator {
 public:
  /// Throws Error(kBadInput) for a recipe whose reading is unknown.
  Speculator(const Recipe& recipe, const SamplingOptions& sampling);

  /// Evaluates up to `chunk` of the prompt's pending tokens. Returns true when these were the last and the
  /// first token after them has been appended.
  bool prefill(Sequence& sequence, int64_t chunk, Evaluator& evaluator, Stats& stats);

  /// Appends between 1 and budget ≥ 1 tokens. The cache must have room for the sequence and budget - 1 more.
  void step(Sequence& sequence, int64_t budget, Evaluator& evaluator, Stats& stats);

 private:
  std::optional<SelfDrafter> drafter_;
  Sampler sampler_;
};

}  // namespace verbatim
