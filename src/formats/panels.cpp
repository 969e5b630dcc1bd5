#include "formats/panels.h"

#include "base/matrix.h"

namespace verbatim {

namespace {

void convert(float value, float& out) {
  out = value;
}
void convert(float value, BFloat16& out) {
  out = to_bfloat16(value);
}
void convert(float value, Float16& out) {
  out = to_float16(value);
}
float widen(float value) {
  return value;
}
float widen(BFloat16 value) {
  return to_float(value);
}
float widen(Float16 value) {
  return to_float(value);
}

}  // namespace

template <typename T>
PanelMatrix<T>::PanelMatrix(int64_t columns_, int64_t k_)
    : columns(round_up(columns_, kPanelWidth)),
      k(round_up(k_, kInnerStep)),
      data(static_cast<size_t>(columns * k)) {}

template <typename T>
void pack_panel(PanelMatrix<T>& matrix, int64_t panel, std::span<const float> weights, int64_t column_count) {
  const int64_t count = static_cast<int64_t>(weights.size()) / column_count;
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t column = 0; column < column_count; ++column) {
      const int64_t offset = panel_offset(matrix, panel * kPanelWidth + column, k);
      convert(weights[static_cast<size_t>(column * count + k)], matrix.data[static_cast<size_t>(offset)]);
    }
  }
}

template <typename T>
void unpack_column(const PanelMatrix<T>& matrix, int64_t column, std::span<float> out) {
  for (int64_t k = 0; k < matrix.k; ++k) {
    out[static_cast<size_t>(k)] = widen(matrix.data[static_cast<size_t>(panel_offset(matrix, column, k))]);
  }
}

template struct PanelMatrix<float>;
template struct PanelMatrix<Float16>;
template struct PanelMatrix<BFloat16>;
template void pack_panel(PanelMatrix<float>&, int64_t, std::span<const float>, int64_t);
template void pack_panel(PanelMatrix<Float16>&, int64_t, std::span<const float>, int64_t);
template void pack_panel(PanelMatrix<BFloat16>&, int64_t, std::span<const float>, int64_t);
template void unpack_column(const PanelMatrix<float>&, int64_t, std::span<float>);
template void unpack_column(const PanelMatrix<Float16>&, int64_t, std::span<float>);
template void unpack_column(const PanelMatrix<BFloat16>&, int64_t, std::span<float>);

}  // namespace verbatim
