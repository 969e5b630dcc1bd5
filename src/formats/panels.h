#pragma once

#include "base/float16.h"
#include "formats/packed_matrix.h"

namespace verbatim {

// The formats `bf16`, `f16` and `f32`: panels of 16 output columns, with k inside. They have one plane:
//   bf16       [panel][k/2][16][2]  pairs along k, so that 16 × 32 weights are one AMX tile of 1 KB
//   f16, f32   [panel][k][16]
// k is padded with zeros to a multiple of 32 and the columns to a multiple of 16. Values that the type does
// not hold exactly are rounded to nearest, ties to even. Readings: `bf16`, with activations in BF16; `f16`
// and `f32`, with activations in F32.

/// The index of element (column, k) in the plane.
template <typename T>
int64_t panel_offset(const PackedMatrix& matrix, int64_t column, int64_t k) {
  constexpr int64_t kDepth = std::is_same_v<T, BFloat16> ? 2 : 1;
  return column / kPanelWidth * matrix.k * kPanelWidth + k / kDepth * kPanelWidth * kDepth +
         column % kPanelWidth * kDepth + k % kDepth;
}

const FormatOperations& bf16_operations();
const FormatOperations& f16_operations();
const FormatOperations& f32_operations();

}  // namespace verbatim
