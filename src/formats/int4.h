#pragma once

#include "formats/packed_matrix.h"

namespace verbatim {

/// The formats `int4` and `int4-asymmetric`: groups of 128 weights along k share a scale, and each weight is
/// a 4-bit integer, rounded to nearest. Of a few scales near the full range, the one with the smallest
/// squared error is taken. Codes and scales of a file that is quantized so (scaled_codes.h) are kept,
/// however. The weights of QSpec's schemes (QSpec §4) are stored in `int4`, too.
///
/// Planes: 0  codes   [panel][tile][256]          tile_codes.h
///         1  scales  F16 [panel][groups][16]
///         2  zeros   uint8 [panel][groups][16]   `int4-asymmetric` only; 8 for all otherwise
/// A weight is (code - zero) · scale and takes 4.125 bits, or 4.1875 if asymmetric. Readings: `w4a16`,
/// products with BF16 activations per group, scaled in F32; `w4a8`, integer products per group; `w4a4`,
/// integer products per group with activations in four bits (Atom, QuaRot; QSpec §3).
const FormatOperations& int4_operations();
const FormatOperations& int4_asymmetric_operations();

}  // namespace verbatim
