#include "speculation/speculator.h"

#include <algorithm>

namespace verbatim {

Speculator::Speculator(const Recipe& recipe, const SamplingOptions& sampling) : sampler_(sampling) {
  if (!recipe.plain()) {
    const DraftLevel& level = recipe.levels.front();
    drafter_.emplace(parse_reading(level.reading, "recipe " + recipe.name),
                     StopRule{level.length, level.threshold});
  }
}

bool Speculator::prefill(Sequence& sequence, int64_t chunk, Evaluator& evaluator, Stats& stats) {
  const Stopwatch watch(stats.seconds_prefill);
  const auto length = static_cast<int64_t>(sequence.tokens.size());
  // Where everything is known already (a sequence that was truncated), the last token gives the logits once
  // more.
  const int64_t first = std::min(sequence.cache.length(), length - 1);
  const int64_t end = std::min(length, first + chunk);
  const bool last = end == length;
  const Matrix<const float> logits = evaluator.evaluate(sequence, first, end, last ? 1 : 0, Reading::kFull);
  stats.prompt_tokens += end - first;
  sequence.cache.set_length(end);
  if (last) sequence.tokens.push_back(sampler_.sample(logits.row_span(0), length, sequence.tokens));
  return last;
}

void Speculator::step(Sequence& sequence, int64_t budget, Evaluator& evaluator, Stats& stats) {
  const auto known = static_cast<int64_t>(sequence.tokens.size());
  int64_t drafted = 0;
  if (drafter_ && budget > 1) {
    const Stopwatch watch(stats.seconds_draft);
    drafted = drafter_->propose(sequence, budget - 1, evaluator, sampler_);
    stats.drafted += drafted;
    stats.draft_passes += drafted;
  }

  const Stopwatch watch(stats.seconds_verify);
  const Matrix<const float> logits =
      evaluator.evaluate(sequence, known - 1, known + drafted, drafted + 1, Reading::kFull);
  ++stats.target_passes;
  for (int64_t i = 0; i <= drafted; ++i) {
    const int64_t position = known + i;
    // The history of a position is the drafts before it, all of which have just been found right.
    const std::span<const int32_t> history(sequence.tokens.data(), static_cast<size_t>(position));
    const int32_t token = sampler_.sample(logits.row_span(i), position, history);
    if (i < drafted && token == sequence.tokens[static_cast<size_t>(position)]) {
      ++stats.accepted;
      continue;
    }
    sequence.tokens.resize(static_cast<size_t>(position));
    sequence.tokens.push_back(token);
    break;
  }
  sequence.cache.set_length(static_cast<int64_t>(sequence.tokens.size()) - 1);
}

}  // namespace verbatim
