#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix.h"
#include "sampling/log_probability.h"
#include "speculation/evaluator.h"
#include "verbatim/recipe.h"

namespace verbatim {

/// What verification made of a draft.
struct Verdict {
  int32_t last = DraftNode::kRoot;  ///< the last node that stays
  int64_t kept = 0;                 ///< how many stay: its depth + 1
  bool rejected = false;            ///< it was offered more after that, and took none of it
};

/// Goes along a draft as far as the rule of a recipe keeps it, and appends to `tokens` what stays and the
/// model's own next token. `logits` and `evaluator` are those of the pass that verified it; `scores` hears of
/// every token that is appended.
///
///   exact      a token stays that is the sampler's choice: plain decoding's bytes
///   rejection  Leviathan et al. §2.3: plain decoding's distribution
///   bild       a token stays whose -log probability is at most recipe.rollback (thesis §4.3, eq. 4.3, with
///              the cross-entropy of appendix C.1): lossy
Verdict accept(const Recipe& recipe, const Draft& draft, Matrix<const float> logits,
               const Evaluator& evaluator, Sampler& sampler, std::vector<int32_t>& tokens,
               const ScoreSink& scores = {});

}  // namespace verbatim
