#include "verbatim/score.h"

#include "base/error.h"
#include "engine/model_access.h"
#include "engine/whole_text.h"
#include "sampling/log_probability.h"

namespace verbatim {

std::vector<ScoredToken> score(const Model& model, std::span<const int32_t> tokens,
                               const ScoreOptions& options) {
  if (options.top_logprobs < 0 || options.top_logprobs > kMostTopLogprobs) {
    fail(ErrorKind::kUsage, "{} likeliest tokens were asked for; 0 to {} are possible", options.top_logprobs,
         kMostTopLogprobs);
  }
  const int32_t threads = threads_to_use(options.threads);
  check_text(model, tokens, 2, "scored");
  const Decoder& decoder = data_of(model).decoder;
  const PassKind kind(checked_reading(decoder, options.reading, "the reading to score"));
  // The last token predicts nothing that is asked for.
  const std::span<const int32_t> evaluated = tokens.first(tokens.size() - 1);
  std::vector<ScoredToken> scores(evaluated.size());
  evaluate_text(decoder, kind, options.cache, threads, evaluated,
                [&](int64_t first, Matrix<const float> logits) {
                  for (int64_t r = 0; r < logits.rows; ++r) {
                    const auto at = static_cast<size_t>(first + r);
                    scores[at] = score_token(logits.row_span(r), tokens[at + 1], options.top_logprobs);
                  }
                  if (!options.progress) return;
                  const auto done = static_cast<double>(first + logits.rows);
                  options.progress(done / static_cast<double>(evaluated.size()));
                });
  return scores;
}

}  // namespace verbatim
