#pragma once

#include "formats/packed_matrix.h"

namespace verbatim {

/// The format `mxbf16`: an MXFP4 draft nested in lossless BF16. The magnitudes of BF16 numbers, taken as
/// 15-bit integers, are in order, and those that round to one MXFP4 level under a shared exponent X are one
/// contiguous run. So beside the MXFP4 code one byte is enough, the place within the run:
///   magnitude = start[level] + (X << 7) + place
/// The runs of the levels 0.5 to 6 are at most 192 long. The run of level 0 is open below: its upper 256
/// places, down to about X/16, fit into the byte, and smaller weights are escaped weights
/// (escaped_weights.h). A group of nothing but zeros has none, because under the lowest exponent zero is
/// among the places.
///
/// Planes: 0  codes   [panel][tile][256]   exactly `mxfp4`
///         1  scales  [panel][tile][16]    exactly `mxfp4`
///         2  places  [panel][tile][512]   tile_codes.h: rest_byte()
///         3..6  escaped weights
/// A weight takes 12.28 bits and an escaped weight 24 more, which is about 12.81 for trained weights.
/// Readings: `mxbf16-draft`, which is `mxfp4-w4a8` on the first two planes; `mxbf16-full`, which gives the
/// original BF16 bits of all weights but NaN.
const FormatOperations& mxbf16_operations();

}  // namespace verbatim
