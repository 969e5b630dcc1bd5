#pragma once

#include <cstdint>
#include <span>

#include "formats/packed_matrix.h"

namespace verbatim {

/// MXFP4 (OCP Microscaling; ML-SpecQD §III-D3): groups of 32 weights along k share a power-of-two scale; each
/// weight is a 4-bit E2M1 number (±0, 0.5, 1, 1.5, 2, 3, 4, 6). 4.25 bits per weight.
///
/// Planes: 0  codes   [panel][tile][256]   tile_codes.h; bit 3 of a code is the sign
///         1  scales  [panel][tile][16]    E8M0: weight = E2M1 · 2^(scale - 127)
/// Readings: `w4a16`, the weights in BF16, exactly; `w4a8`, integer products over four groups, scaled late
/// (kernels/generic/shared_exponents.h).

/// One group of 32, quantized.
struct Mxfp4Group {
  uint8_t exponent;  ///< E8M0, from 64 to 147, or 3 if all weights are zero
  uint8_t codes[32];
};

/// The scale puts the largest magnitude into [4, 8) times itself (OCP MX §6.3); weights are rounded to the
/// nearest E2M1 number, ties to the even code, those beyond 6 to 6. NaN counts as 0. The exponent is kept
/// within 64 .. 147: every weight is then a BF16 number, no sum over a group of int8 activations infinite,
/// and the levels are runs of BF16 numbers, in order (mxbf16.h). Weights beyond 6 · 2^20 thus become that. A
/// group of zeros has the exponent 3.
Mxfp4Group quantize_mxfp4(std::span<const float, 32> weights);

/// The value of a code under a scale.
float mxfp4_value(uint8_t code, uint8_t exponent);

const FormatOperations& mxfp4_operations();

/// The planes 0 and 1 of a panel, for formats that begin with them.
void pack_mxfp4_panel(PackedMatrix& matrix, const PanelSource& source);

}  // namespace verbatim
