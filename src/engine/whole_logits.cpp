#include "verbatim/whole_logits.h"

#include "base/error.h"
#include "engine/model_access.h"
#include "engine/whole_text.h"

namespace verbatim {

void whole_logits(const Model& model, std::span<const int32_t> tokens, const WholeLogitsOptions& options,
                  const std::function<void(int64_t position, std::span<const float> logits)>& visit) {
  if (options.prefill_chunk < 1) {
    fail(ErrorKind::kUsage, "passes over {} tokens were asked for; at least 1 is needed",
         options.prefill_chunk);
  }
  const int32_t threads = threads_to_use(options.threads);
  check_text(model, tokens, 1, "evaluated");
  const Decoder& decoder = data_of(model).decoder;
  const PassKind kind(checked_reading(decoder, options.reading, "the reading to evaluate with"));
  evaluate_text(
      decoder, kind, options.cache, threads, tokens,
      [&](int64_t first, Matrix<const float> logits) {
        for (int64_t r = 0; r < logits.rows; ++r) visit(first + r, logits.row_span(r));
      },
      options.prefill_chunk);
}

}  // namespace verbatim
