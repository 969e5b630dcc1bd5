#pragma once

#include <cstdint>
#include <optional>

namespace verbatim {

// What files of both kinds say about scaled positions, and how Transformers understands it.

/// The longest sequence of a model with linear, dynamic or YaRN scaling. `stated` is its file's
/// max_position_embeddings or context_length, `original` the context before scaling if the file has that too.
///
/// Files disagree about the first: with linear and dynamic scaling Transformers asked for the original
/// context there, others write the scaled one. Neither limits what Transformers evaluates. So the result is
/// the larger of `stated` and original × factor, the original being `stated` where the file says nothing
/// else.
int32_t scaled_context(int32_t stated, std::optional<int32_t> original, float factor);

/// What YaRN multiplies cosines and sines by where a file does not state it: 0.1 · ln(factor) + 1, or the
/// ratio of two such with `mscale` and `mscale_all_dim` before the logarithm where neither is absent or 0. A
/// factor up to 1 needs none.
float yarn_attention_factor(float factor, std::optional<float> mscale = {},
                            std::optional<float> mscale_all_dim = {});

}  // namespace verbatim
