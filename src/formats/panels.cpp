#include "formats/panels.h"

#include "base/matrix.h"

namespace verbatim {

namespace {

template <typename T>
T convert(float value);
template <>
float convert<float>(float value) {
  return value;
}
template <>
BFloat16 convert<BFloat16>(float value) {
  return to_bfloat16(value);
}
template <>
Float16 convert<Float16>(float value) {
  return to_float16(value);
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

template <typename T>
constexpr Format kFormatOf = std::is_same_v<T, BFloat16>  ? Format::kBf16
                             : std::is_same_v<T, Float16> ? Format::kF16
                                                          : Format::kF32;

template <typename T>
size_t plane_bytes(const PackedMatrix& matrix) {
  return static_cast<size_t>(matrix.columns * matrix.k) * sizeof(T);
}

template <typename T>
PackedMatrix allocate(int64_t columns, int64_t k, Element, const MatrixStatistics&) {
  PackedMatrix matrix = make_matrix(kFormatOf<T>, columns, k);
  matrix.planes.emplace_back(plane_bytes<T>(matrix));
  return matrix;
}

template <typename T>
void pack_panel(PackedMatrix& matrix, const PanelSource& source, const MatrixStatistics&, PanelTail&) {
  T* const out = matrix.plane(0).as<T>();
  const int64_t inputs = source.inputs();
  for (int64_t column = 0; column < source.column_count; ++column) {
    const float* const weights = source.weights.data() + column * inputs;
    const int64_t place = source.panel * kPanelWidth + column;
    for (int64_t k = 0; k < inputs; ++k) out[panel_offset<T>(matrix, place, k)] = convert<T>(weights[k]);
  }
}

template <typename T>
void validate(const PackedMatrix& matrix) {
  check_plane(matrix, 0, plane_bytes<T>(matrix));
}

template <typename T>
void unpack_column(const PackedMatrix& matrix, Reading, int64_t column, std::span<float> out) {
  const T* const weights = matrix.plane(0).as<T>();
  for (int64_t k = 0; k < matrix.k; ++k) {
    out[static_cast<size_t>(k)] = widen(weights[panel_offset<T>(matrix, column, k)]);
  }
}

int64_t bytes_read(const PackedMatrix& matrix, Reading) {
  return matrix.bytes();
}

template <typename T>
const FormatOperations& panel_operations() {
  static constexpr FormatOperations kOperations = {allocate<T>, pack_panel<T>,    nullptr,
                                                   validate<T>, unpack_column<T>, bytes_read};
  return kOperations;
}

}  // namespace

const FormatOperations& bf16_operations() {
  return panel_operations<BFloat16>();
}
const FormatOperations& f16_operations() {
  return panel_operations<Float16>();
}
const FormatOperations& f32_operations() {
  return panel_operations<float>();
}

}  // namespace verbatim
