#include "verbatim/top_logits.h"

#include "base/error.h"
#include "engine/model_access.h"
#include "engine/whole_text.h"
#include "sampling/logits.h"

namespace verbatim {

namespace {

std::vector<TokenLogit> best_of(std::span<const float> logits, int32_t top, int64_t position) {
  std::vector<TokenLogit> best;
  for (const int32_t token : best_tokens(logits, static_cast<size_t>(top))) {
    best.push_back({token, logits[static_cast<size_t>(token)]});
  }
  if (best.empty()) {
    bad_input(
        "the model gave no usable logit at position {}: all {} are NaN or minus infinity; check its weights",
        position, logits.size());
  }
  return best;
}

}  // namespace

std::vector<std::vector<TokenLogit>> top_logits(const Model& model, std::span<const int32_t> tokens,
                                                const TopLogitsOptions& options) {
  if (options.top < 1) {
    fail(ErrorKind::kUsage, "{} best tokens were asked for; at least 1 is needed", options.top);
  }
  if (options.prefill_chunk < 1) {
    fail(ErrorKind::kUsage, "passes over {} tokens were asked for; at least 1 is needed",
         options.prefill_chunk);
  }
  const int32_t threads = threads_to_use(options.threads);
  check_text(model, tokens, 1, "evaluated");
  const Decoder& decoder = data_of(model).decoder;
  const PassKind kind(checked_reading(decoder, options.reading, "the reading to evaluate with"));
  std::vector<std::vector<TokenLogit>> result(tokens.size());
  evaluate_text(
      decoder, kind, options.cache, threads, tokens,
      [&](int64_t first, Matrix<const float> logits) {
        for (int64_t r = 0; r < logits.rows; ++r) {
          result[static_cast<size_t>(first + r)] = best_of(logits.row_span(r), options.top, first + r);
        }
        if (!options.progress) return;
        const auto done = static_cast<double>(first + logits.rows);
        options.progress(done / static_cast<double>(tokens.size()));
      },
      options.prefill_chunk);
  return result;
}

}  // namespace verbatim
