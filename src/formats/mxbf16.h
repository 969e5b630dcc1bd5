#pragma once

#include "formats/packed_matrix.h"

namespace verbatim {

/// MXBF16: an MXFP4 draft nested in lossless BF16. As 15-bit integers the magnitudes of BF16 are
/// in order, and those that round to one MXFP4 level under a shared exponent X are one contiguous run. So
/// beside the MXFP4 code a byte suffices, the place within the run:
///   magnitude = start[level] + (X << 7) + place
/// Runs of the levels 0.5 to 6 are at most 192 long. Level 0 is open below: its upper 256 places, down to
/// about X/16, fit, and what is smaller is an escaped weight, kept whole (escaped_weights.h). A group of
/// nothing but zeros needs none: under the lowest exponent, zero is among the places.
///
/// Planes: 0  codes   [panel][tile][256]   exactly `mxfp4`
///         1  scales  [panel][tile][16]    exactly `mxfp4`
///         2  places  [panel][tile][512]   tile_codes.h: rest_byte()
///         3..6  escaped weights
/// 12.28 bits per weight and 24 per escaped weight; about 12.81 on trained weights. Readings: `draft`, which
/// is `mxfp4` `w4a8` on the first two planes; `full`, the original BF16 bits, any finite or infinite ones.
const FormatOperations& mxbf16_operations();

}  // namespace verbatim
