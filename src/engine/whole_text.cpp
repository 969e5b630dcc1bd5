#include "engine/whole_text.h"

#include <algorithm>

#include "base/error.h"
#include "base/processors.h"
#include "drafting/evaluator.h"
#include "kv/make_cache.h"

namespace verbatim {

void check_text(const Model& model, std::span<const int32_t> tokens, int64_t least, std::string_view done) {
  if (std::ssize(tokens) < least) {
    bad_input("a text of {} tokens cannot be {}: at least {} are needed", tokens.size(), done, least);
  }
  if (std::ssize(tokens) > model.context()) {
    bad_input("the text has {} tokens, more than the model's context of {}: it can only be {} in parts",
              tokens.size(), model.context(), done);
  }
  for (const int32_t token : tokens) {
    if (token < 0 || token >= model.vocab_size()) {
      bad_input("the text has token {}, outside the vocabulary of {} tokens", token, model.vocab_size());
    }
  }
}

int32_t threads_to_use(int32_t wanted) {
  if (wanted < 0) fail(ErrorKind::kUsage, "a number of threads cannot be negative");
  return wanted > 0 ? wanted : hardware_threads();
}

Reading checked_reading(const Decoder& decoder, std::string_view name, std::string_view what) {
  const Reading reading = parse_reading(name, what);
  each_matrix(decoder.weights(), [reading](const LinearWeight& matrix) { matrix.resolve(reading); });
  return reading;
}

void evaluate_text(const Decoder& decoder, const PassKind& kind, const CacheOptions& cache_options,
                   int32_t threads, std::span<const int32_t> tokens,
                   const std::function<void(int64_t first, Matrix<const float> rows)>& visit,
                   int64_t pass_rows) {
  ThreadTeam team(threads);
  Evaluator evaluator(decoder, team);
  const auto count = static_cast<int64_t>(tokens.size());
  const std::unique_ptr<KvCache> cache = make_cache(cache_options, decoder.cache_shape(), count);
  const int64_t most = std::min(pass_rows, cache->most_rows());
  for (int64_t first = 0; first < count; first += most) {
    const int64_t end = std::min(count, first + most);
    const Matrix<const float> rows =
        evaluator.evaluate(tokens.first(static_cast<size_t>(end)), first, end - first, kind, *cache);
    cache->set_length(end);
    visit(first, rows);
  }
}

}  // namespace verbatim
