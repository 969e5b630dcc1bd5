#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "checkpoint/model_config.h"

namespace verbatim {

// The settings of scaled positions that config.json and GGUF files have in common, read as Transformers reads
// them.

/// The length of the longest sequence of a model with linear, dynamic or YaRN scaling. `stated` is
/// max_position_embeddings or context_length of its file, `original` the context before scaling if the file
/// has that, too.
///
/// Files disagree about the meaning of `stated`: for linear and dynamic scaling Transformers expects the
/// original context, other programs write the scaled one, and Transformers evaluates longer sequences in
/// either case. So the result is the larger of `stated` and original × factor, where a missing `original` is
/// taken to be `stated`.
int32_t scaled_context(int32_t stated, std::optional<int32_t> original, float factor);

/// The factor on cosines and sines under YaRN, for files that do not state it: 0.1 · ln(factor) + 1. If both
/// `mscale` and `mscale_all_dim` are given and not 0, it is the ratio of two such numbers, with one of them
/// before each logarithm. It is 1 for a scaling factor up to 1.
float yarn_attention_factor(float factor, std::optional<float> mscale = {},
                            std::optional<float> mscale_all_dim = {});

/// The factor on cosines and sines under LongRoPE, for files that do not state it: the square root of
/// 1 + ln(factor) / ln(original). It is 1 for a scaling factor up to 1.
float long_rope_attention_factor(double factor, int32_t original);

/// The frequency of a rotated pair under the scaling of Llama 3.1: long wavelengths are stretched by the
/// factor, short ones kept, those between interpolated.
double llama3_frequency(double frequency, const RopeScaling& scaling);

/// The divisors of the frequencies of the rotated pairs by which GGUF files state the scaling of Llama 3, to
/// 32 bits. The scaling itself rounds in another way.
std::vector<float> llama3_divisors(const ModelConfig& config);

}  // namespace verbatim
