#pragma once

#include <cstdint>
#include <span>

#include "formats/packed_matrix.h"

namespace verbatim {

/// The format `mxfp4` (OCP Microscaling; ML-SpecQD §III-D3): groups of 32 weights along k share a
/// power-of-two scale, and each weight is a 4-bit E2M1 number (±0, 0.5, 1, 1.5, 2, 3, 4, 6). A weight
/// takes 4.25 bits.
///
/// Planes: 0  codes   [panel][tile][256]   tile_codes.h; bit 3 of a code is the sign
///         1  scales  [panel][tile][16]    E8M0: weight = E2M1 · 2^(scale - 127)
/// Readings: `w4a16`, the weights in BF16, exactly; `w4a8`, integer products over four groups, scaled late
/// (kernels/generic/shared_exponents.h).

/// A group of 32 weights in MXFP4.
struct Mxfp4Group {
  uint8_t exponent;  ///< E8M0, from 64 to 147, or 3 if all weights are zero
  uint8_t codes[32];
};

/// Quantizes a group of 32 weights. The scale is chosen so that the largest magnitude lies in [4, 8) times
/// the scale (OCP MX §6.3). Weights are rounded to the nearest E2M1 number, ties to the even code; beyond 6
/// they become 6, and NaN becomes 0. The exponent is kept within 64 .. 147, so that every weight is a BF16
/// number, no sum over a group of products with int8 activations is infinite, and the levels are runs of BF16
/// numbers, in order (mxbf16.h). Hence weights beyond 6 · 2^20 become that. A group of zeros has the
/// exponent 3.
Mxfp4Group quantize_mxfp4(std::span<const float, 32> weights);

/// The value of a code under a scale with this exponent.
float mxfp4_value(uint8_t code, uint8_t exponent);

const FormatOperations& mxfp4_operations();

/// Packs planes 0 and 1 of a panel. Used by every format that begins with these planes.
void pack_mxfp4_panel(PackedMatrix& matrix, const PanelSource& source);

}  // namespace verbatim
