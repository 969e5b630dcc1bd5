#include "verbatim/score.h"

#include <algorithm>

#include "base/error.h"
#include "drafting/evaluator.h"
#include "engine/model_access.h"
#include "kv/make_cache.h"
#include "sampling/log_probability.h"

namespace verbatim {

namespace {

constexpr int64_t kPassRows = 512;

void check(const Model& model, std::span<const int32_t> tokens, const ScoreOptions& options) {
  if (options.top_logprobs < 0 || options.top_logprobs > kMostTopLogprobs) {
    fail(ErrorKind::kUsage, "{} likeliest tokens were asked for; 0 to {} are possible", options.top_logprobs,
         kMostTopLogprobs);
  }
  if (options.threads < 0) fail(ErrorKind::kUsage, "a number of threads cannot be negative");
  if (tokens.size() < 2)
    bad_input("a text of {} tokens cannot be scored: at least 2 are needed", tokens.size());
  if (std::ssize(tokens) > model.context()) {
    bad_input("the text has {} tokens, more than the model's context of {}: score it in parts", tokens.size(),
              model.context());
  }
  for (const int32_t token : tokens) {
    if (token < 0 || token >= model.vocab_size()) {
      bad_input("the text has token {}, outside the vocabulary of {} tokens", token, model.vocab_size());
    }
  }
}

}  // namespace

std::vector<ScoredToken> score(const Model& model, std::span<const int32_t> tokens,
                               const ScoreOptions& options) {
  check(model, tokens, options);
  const Decoder& decoder = data_of(model).decoder;
  const PassKind kind(decoder.weights().head.resolve(parse_reading(options.reading, "the reading to score")));
  ThreadTeam team(options.threads > 0 ? options.threads : hardware_threads());
  Evaluator evaluator(decoder, team);
  // The last token predicts nothing that is asked for.
  const std::span<const int32_t> evaluated = tokens.first(tokens.size() - 1);
  const auto count = static_cast<int64_t>(evaluated.size());
  const std::unique_ptr<KvCache> cache = make_cache(options.cache, decoder.cache_shape(), count);
  const int64_t most = std::min(kPassRows, cache->most_rows());
  std::vector<ScoredToken> scores(evaluated.size());
  for (int64_t first = 0; first < count; first += most) {
    const int64_t end = std::min(count, first + most);
    const Matrix<const float> logits =
        evaluator.evaluate(evaluated.first(static_cast<size_t>(end)), first, end - first, kind, *cache);
    cache->set_length(end);
    for (int64_t r = 0; r < logits.rows; ++r) {
      const auto at = static_cast<size_t>(first + r);
      scores[at] = score_token(logits.row_span(r), tokens[at + 1], options.top_logprobs);
    }
    if (options.progress) options.progress(static_cast<double>(end) / static_cast<double>(count));
  }
  return scores;
}

}  // namespace verbatim
