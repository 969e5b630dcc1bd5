#pragma once

#include <cstdint>
#include <span>

#include "base/aligned_buffer.h"
#include "kernels/kernel_table.h"

namespace verbatim {

/// MXFP4 (OCP Microscaling; ML-SpecQD §III-D3): groups of 32 weights along k share a power-of-two scale; each
/// weight is a 4-bit E2M1 number (±0, 0.5, 1, 1.5, 2, 3, 4, 6). 4.25 bits per weight.
///
/// Layout, per panel of 16 columns and group g of 32:
///   codes  [panel][g][4][16][4]  byte j of column c in block b holds weight k = 32 g + 8 b + j in its low
///   nibble and
///                                k + 4 in its high nibble: the order of ML-SpecQD Fig. 4
///   scales [panel][g][16]        the biased exponent X + 127 of the column's group (E8M0)
/// Scale exponents are kept in 2..252 so that every weight is a normal BF16 number or zero: readings in BF16
/// are exact.
struct Mxfp4Matrix {
  int64_t columns = 0;  ///< outputs, padded to whole panels
  int64_t k = 0;        ///< inputs, padded to whole groups
  Buffer<uint8_t> codes;
  Buffer<uint8_t> scales;

  Mxfp4Matrix() = default;
  Mxfp4Matrix(int64_t columns, int64_t k);

  int64_t bytes() const { return static_cast<int64_t>(codes.size() + scales.size()); }
  /// Panels first .. first + count - 1, for the kernels.
  Mxfp4Panels panels(int64_t first, int64_t count) const;
};

/// A group of 32 weights in MXFP4.
struct Mxfp4Group {
  uint8_t codes[32];  ///< sign in bit 3, magnitude code in bits 0..2
  uint8_t exponent;
};

/// The direct cast of ML-SpecQD §III-D3 and OCP MX: the scale is the largest power of two not above the
/// largest magnitude, over 4; weights round to nearest, ties to the even code; what exceeds 6 is clamped. NaN
/// becomes 0.
Mxfp4Group quantize_mxfp4(std::span<const float, 32> weights);

/// The value of a code under a scale exponent.
float mxfp4_value(uint8_t code, uint8_t exponent);

/// Quantizes one output column (k weights, fewer than matrix.k are padded with zeros) into its place.
/// Different columns may be packed at the same time.
void pack_mxfp4_column(Mxfp4Matrix& matrix, int64_t column, std::span<const float> weights);

/// The reference unpacking of one column: matrix.k values.
void unpack_mxfp4_column(const Mxfp4Matrix& matrix, int64_t column, std::span<float> out);

}  // namespace verbatim
