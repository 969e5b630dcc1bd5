#include "speculation/self_drafter.h"

#include <algorithm>

#include "sampling/probability.h"
#include "verbatim/error.h"

namespace verbatim {

int64_t SelfDrafter::propose(Sequence& sequence, int64_t budget, Evaluator& evaluator,
                             Sampler& sampler) const {
  const int64_t most = std::min<int64_t>(budget, stop_.length);
  for (int64_t drafted = 0; drafted < most; ++drafted) {
    const auto position = static_cast<int64_t>(sequence.tokens.size());
    const Matrix<const float> logits = evaluator.evaluate(sequence, position - 1, position, 1, reading_);
    int32_t token = 0;
    try {
      token = sampler.sample(logits.row_span(0), position, sequence.tokens);
    } catch (
        const Error&) {  // no usable logit: a draft is only a guess, and verification will judge for itself
      return drafted;
    }
    sequence.tokens.push_back(token);
    if (stop_.threshold > 0.0f && probability(logits.row_span(0), token) < stop_.threshold)
      return drafted + 1;
  }
  return std::max<int64_t>(most, 0);
}

}  // namespace verbatim
