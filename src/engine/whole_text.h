#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "base/matrix.h"
#include "model/decoder.h"
#include "verbatim/cache.h"
#include "verbatim/model.h"

namespace verbatim {

/// Checks a text that is evaluated as a whole. Throws Error(kBadInput), saying that the text cannot be
/// `done` ("scored"), when it has fewer tokens than `least`, more than the model's context, or a token
/// outside the vocabulary.
void check_text(const Model& model, std::span<const int32_t> tokens, int64_t least, std::string_view done);

/// The number of threads for a caller who asks for `wanted`; 0: one for every core that this process may use.
/// Throws Error(kUsage) for a negative number.
int32_t threads_to_use(int32_t wanted);

/// The reading of a name, for passes over a text; messages call it `what`. Throws Error(kUsage) where a
/// matrix of the decoder has no store for it.
Reading checked_reading(const Decoder& decoder, std::string_view name, std::string_view what);

/// The tokens in a pass over a text that is evaluated as a whole.
inline constexpr int64_t kWholeTextPassRows = 512;

/// Evaluates a text from its beginning in passes of `pass_rows` tokens, or fewer where the cache takes fewer.
/// Calls `visit` after each pass with the place of its first token and what the pass gives for each of its
/// tokens: logits, or hidden states.
void evaluate_text(const Decoder& decoder, const PassKind& kind, const CacheOptions& cache, int32_t threads,
                   std::span<const int32_t> tokens,
                   const std::function<void(int64_t first, Matrix<const float> rows)>& visit,
                   int64_t pass_rows = kWholeTextPassRows);

}  // namespace verbatim
