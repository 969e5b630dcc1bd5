#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix.h"
#include "drafting/evaluator.h"
#include "sampling/log_probability.h"
#include "verbatim/recipe.h"

namespace verbatim {

/// Which nodes of a draft acceptance kept: the path to one node.
struct Verdict {
  int32_t last = DraftNode::kRoot;  ///< the last kept node
  int64_t kept = 0;                 ///< the number of kept nodes: the depth of `last` + 1
  bool rejected = false;            ///< `last` has children, and none of them was kept
};

/// Applies the acceptance rule of a recipe to a draft: walks from the root along nodes that the rule keeps,
/// and appends their tokens and one more token of the model's own to `tokens`. `logits` and `evaluator` are
/// those of the pass that verified the draft. `scores` is called for every token that is appended. The rules
/// are:
///
///   exact      keeps the sampler's choice: the text has plain decoding's bytes
///   rejection  keeps a token by chance (Leviathan et al. §2.3): the text has plain decoding's distribution
///   bild       keeps a token whose -log probability is at most recipe.rollback: lossy (thesis §4.3, eq. 4.3)
///
/// Where no token can be chosen after a kept one, the step ends with that one: the reply may end there, and
/// if it does not, the next step throws what plain decoding throws. accept() throws only where the first
/// token of the step cannot be chosen.
///
/// The distance of the rule `bild` is the cross-entropy of the thesis' appendix C.1.
Verdict accept(const Recipe& recipe, const Draft& draft, Matrix<const float> logits,
               const Evaluator& evaluator, Sampler& sampler, std::vector<int32_t>& tokens,
               const ScoreSink& scores = {});

}  // namespace verbatim
