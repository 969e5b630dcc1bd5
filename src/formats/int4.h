#pragma once

#include "formats/packed_matrix.h"

namespace verbatim {

/// Groups of 128 weights along k share a scale, each weight is a 4-bit integer, rounded to nearest; the scale
/// is the one of a few near the full range that leaves the smallest squared error. The weights of QSpec's
/// schemes (QSpec §4) lie like this too.
///
/// Planes: 0  codes   [panel][tile][256]          tile_codes.h
///         1  scales  F16 [panel][groups][16]
///         2  zeros   uint8 [panel][groups][16]   `int4-asymmetric` only; 8 for all otherwise
/// weight = (code - zero) · scale. 4.125 bits per weight, asymmetric 4.1875. Readings: `w4a16`, products with
/// BF16 activations per group, scaled in F32; `w4a8`, integer products per group; `w4a4`, likewise with
/// activations in four bits (Atom, QuaRot; QSpec §3).
const FormatOperations& int4_operations();
const FormatOperations& int4_asymmetric_operations();

}  // namespace verbatim
