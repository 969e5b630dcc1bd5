#include "speculation/sequence.h"

namespace verbatim {

Matrix<const float> Evaluator::evaluate(Sequence& sequence, int64_t first, int64_t end, int64_t logits_count,
                                        Reading reading) {
  rows_.clear();
  for (int64_t position = first; position < end; ++position) {
    rows_.push_back({0, static_cast<int32_t>(position), sequence.tokens[static_cast<size_t>(position)]});
  }
  DenseCache* const caches[] = {&sequence.cache};
  return decoder_->forward(rows_, reading, caches, end - first - logits_count, workspace_, *team_);
}

}  // namespace verbatim
