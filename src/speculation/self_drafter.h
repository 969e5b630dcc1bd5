#pragma once

#include <cstdint>

#include "formats/format.h"
#include "sampling/sampler.h"
#include "speculation/sequence.h"

namespace verbatim {

/// When to stop drafting.
struct StopRule {
  int32_t length = 8;      ///< at most so many tokens per step
  float threshold = 0.0f;  ///< stop after a token less probable than this under the draft; 0: never
};

/// Drafts with another reading of the model it drafts for (ML-SpecQD §III-B, QSpec §3.1). It continues from
/// the verified cache and writes its own keys and values into the slots after it, which verification
/// overwrites; so it keeps no state of its own.
class SelfDrafter {
 public:
  SelfDrafter(Reading reading, StopRule stop) : reading_(reading), stop_(stop) {}

  /// Appends up to min(budget, stop rule) drafted tokens to sequence.tokens and returns how many. Samples
  /// with the verifier's own sampler, so that a draft is kept exactly when its logits lead to the verifier's
  /// choice.
  int64_t propose(Sequence& sequence, int64_t budget, Evaluator& evaluator, Sampler& sampler) const;

 private:
  Reading reading_;
  StopRule stop_;
};

}  // namespace verbatim
