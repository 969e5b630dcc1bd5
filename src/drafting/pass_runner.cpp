#include "drafting/pass_runner.h"

#include "base/stopwatch.h"
#include "drafting/sequence.h"

namespace verbatim {

Matrix<const float> SingleRunner::run(std::span<const Row> rows, const PassKind& kind, KvCache& cache,
                                      int64_t first_logits_row) {
  KvCache* const caches[] = {&cache};
  last_ = {std::ssize(rows), 0.0};
  const Stopwatch watch(last_.seconds);
  return decoder_->forward(rows, kind, caches, first_logits_row, workspace_, *team_);
}

void SingleRunner::keep_path(int64_t last, KvCache& cache) {
  decoder_->keep_path(last, cache, workspace_);
}

std::unique_ptr<PassRunner> SingleRunner::runner_for_draft_model(const Decoder& other, bool small) {
  auto one_thread = small ? std::make_unique<ThreadTeam>(1) : nullptr;
  auto runner = std::make_unique<SingleRunner>(other, small ? *one_thread : *team_);
  runner->one_thread_ = std::move(one_thread);
  return runner;
}

}  // namespace verbatim
