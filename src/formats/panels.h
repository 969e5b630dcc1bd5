#pragma once

#include <cstdint>
#include <span>

#include "base/aligned_buffer.h"
#include "base/float16.h"
#include "kernels/kernel_table.h"

namespace verbatim {

/// The canonical panel layout (design §4) for `bf16`, `f16` and `f32`: panels of 16 output columns, k inside.
///   bf16       [panel][k/2][16][2]  pairs along k, so that 16 × 32 weights are one AMX tile of 1 KB
///   f16, f32   [panel][k][16]
/// k is padded with zeros to a multiple of 32 and the columns to a multiple of 16.
template <typename T>
struct PanelMatrix {
  int64_t columns = 0;  ///< outputs, padded
  int64_t k = 0;        ///< inputs, padded
  Buffer<T> data;

  PanelMatrix() = default;
  PanelMatrix(int64_t columns, int64_t k);

  int64_t panel_stride() const { return k * kPanelWidth; }
  const T* panel(int64_t index) const { return data.data() + index * panel_stride(); }
  int64_t bytes() const { return static_cast<int64_t>(data.size() * sizeof(T)); }
};

/// Where element (column, k) lies in `matrix.data`.
template <typename T>
int64_t panel_offset(const PanelMatrix<T>& matrix, int64_t column, int64_t k) {
  constexpr int64_t kDepth = sizeof(T) == 2 && !std::is_same_v<T, Float16> ? 2 : 1;
  return column / kPanelWidth * matrix.panel_stride() + k / kDepth * kPanelWidth * kDepth +
         column % kPanelWidth * kDepth + k % kDepth;
}

/// Packs one panel from its columns, `weights` = [column_count][k], column_count ≤ 16, k ≤ matrix.k. Values
/// that the type does not hold exactly are rounded to nearest even. Different panels may be packed at the
/// same time.
template <typename T>
void pack_panel(PanelMatrix<T>& matrix, int64_t panel, std::span<const float> weights, int64_t column_count);

/// One output column as floats, exactly: matrix.k values.
template <typename T>
void unpack_column(const PanelMatrix<T>& matrix, int64_t column, std::span<float> out);

}  // namespace verbatim
