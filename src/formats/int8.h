#pragma once

#include <span>

#include "formats/packed_matrix.h"

namespace verbatim {

/// The format `int8`: groups of 32 weights along k share an F16 scale, and each weight is an int8. The
/// numbers are those of GGUF's Q8_0, with 8.5 bits per weight.
///
/// Planes: 0  codes   int8 [panel][k/4][16][4]  in every four the second and the third are exchanged
///                                              (kQuadOrder)
///         1  scales  F16 [panel][tile][16]     weight = code · scale
/// The scale puts the largest magnitude of its group to 127. Readings: `w8a16`, products with BF16
/// activations per group, scaled in F32; `w8a8`, integer products.
const FormatOperations& int8_operations();

/// A group of 32 weights in `int8`.
struct Int8Group {
  Float16 scale;
  int8_t codes[kInnerStep];
};
/// Rounds a group of 32 weights to codes from -127 to 127. Weights that are not finite become zero.
Int8Group quantize_int8_group(std::span<const float, kInnerStep> weights);

}  // namespace verbatim
