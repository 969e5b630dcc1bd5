#include "verbatim/embed.h"

#include <cmath>

#include "base/error.h"
#include "engine/model_access.h"
#include "engine/whole_text.h"

namespace verbatim {

namespace {

/// The vector as numbers of half the precision, of length 1 if that is wanted.
std::vector<float> finished(const std::vector<double>& sums, bool normalize) {
  double square = 0.0;
  for (const double sum : sums) square += sum * sum;
  if (!std::isfinite(square)) {
    bad_input("the model gave hidden states that are not finite; check its weights");
  }
  const double scale = normalize && square > 0.0 ? 1.0 / std::sqrt(square) : 1.0;
  std::vector<float> vector;
  vector.reserve(sums.size());
  for (const double sum : sums) vector.push_back(static_cast<float>(sum * scale));
  return vector;
}

}  // namespace

std::vector<float> embed(const Model& model, std::span<const int32_t> tokens, const EmbedOptions& options) {
  check_text(model, tokens, 1, "embedded");
  const int32_t threads = threads_to_use(options.threads);
  const Decoder& decoder = data_of(model).decoder;
  PassKind kind(checked_reading(decoder, options.reading, "the reading to embed with"));
  kind.hidden_states = true;
  const auto count = static_cast<int64_t>(tokens.size());
  const bool mean = options.pooling == Pooling::kMean;
  std::vector<double> sums(static_cast<size_t>(decoder.config().hidden_size));
  evaluate_text(decoder, kind, {}, threads, tokens, [&](int64_t first, Matrix<const float> states) {
    for (int64_t r = 0; r < states.rows; ++r) {
      if (!mean && first + r < count - 1) continue;
      const std::span<const float> state = states.row_span(r);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += state[i];
    }
  });
  if (mean) {
    for (double& sum : sums) sum /= static_cast<double>(count);
  }
  return finished(sums, options.normalize);
}

}  // namespace verbatim
