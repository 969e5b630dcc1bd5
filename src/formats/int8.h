#pragma once

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

/// The format `q8_0`: the planes of `int8`, but with codes and scales that are not chosen here. They are
/// those of the tensor in the file (PanelSource::codes), so that no weight is rounded, and a code may be
/// -128. Where a matrix has no codes of its own, pack_matrix() refuses the format, and packing floats in it
/// rounds them as `int8` does. Its one reading is `w8a16` of `int8`, since products of int8 activations could
/// not take -128.
const FormatOperations& q8_0_operations();

}  // namespace verbatim
