#include "formats/int8.h"

#include <algorithm>
#include <cmath>

#include "formats/tile_codes.h"

namespace verbatim {

namespace {

constexpr float kLargestF16 = 65504.0f;

size_t code_bytes(const PackedMatrix& matrix) {
  return static_cast<size_t>(matrix.columns * matrix.k);
}
size_t scale_bytes(const PackedMatrix& matrix) {
  return static_cast<size_t>(matrix.columns * matrix.tiles()) * sizeof(Float16);
}

int64_t code_index(const PackedMatrix& matrix, int64_t column, int64_t k) {
  return column / kPanelWidth * matrix.k * kPanelWidth + k / 4 * 64 + column % kPanelWidth * 4 +
         kQuadOrder[k % 4];
}

template <Format format>
PackedMatrix allocate(int64_t columns, int64_t k, Element, const MatrixStatistics&) {
  PackedMatrix matrix = make_matrix(format, columns, k);
  matrix.planes.emplace_back(code_bytes(matrix));
  matrix.planes.emplace_back(scale_bytes(matrix));
  return matrix;
}

void pack_panel(PackedMatrix& matrix, const PanelSource& source, const MatrixStatistics&, PanelTail&) {
  int8_t* const codes = matrix.plane(0).as<int8_t>();
  Float16* const scales = matrix.plane(1).as<Float16>();
  for (int64_t i = 0; i < kPanelWidth; ++i) {
    const int64_t column = source.panel * kPanelWidth + i;
    for (int64_t begin = 0; begin < matrix.k; begin += kInnerStep) {
      float largest = 0.0f;
      for (int64_t k = begin; k < begin + kInnerStep; ++k) {
        const float w = source.at(i, k);
        if (std::isfinite(w)) largest = std::max(largest, std::fabs(w));
      }
      const Float16 scale = to_float16(std::min(largest / 127.0f, kLargestF16));
      scales[tile_scale_index(matrix, column, begin)] = scale;
      const float inverse = scale.bits != 0 ? 1.0f / to_float(scale) : 0.0f;
      for (int64_t k = begin; k < begin + kInnerStep; ++k) {
        const float w = source.at(i, k);
        const float code = std::isfinite(w) ? std::nearbyint(w * inverse) : 0.0f;
        codes[code_index(matrix, column, k)] = static_cast<int8_t>(std::clamp(code, -127.0f, 127.0f));
      }
    }
  }
}

void copy_codes(PackedMatrix& matrix, const PanelSource& source) {
  int8_t* const codes = matrix.plane(0).as<int8_t>();
  Float16* const scales = matrix.plane(1).as<Float16>();
  const int64_t inputs = source.inputs();
  for (int64_t i = 0; i < source.column_count; ++i) {
    const int64_t column = source.panel * kPanelWidth + i;
    for (int64_t k = 0; k < inputs; ++k) {
      codes[code_index(matrix, column, k)] = source.codes[static_cast<size_t>(i * inputs + k)];
    }
    for (int64_t k = 0; k < inputs; k += kInnerStep) {
      scales[tile_scale_index(matrix, column, k)] =
          source.scales[static_cast<size_t>((i * inputs + k) / kInnerStep)];
    }
  }
}

void pack_codes(PackedMatrix& matrix, const PanelSource& source, const MatrixStatistics& statistics,
                PanelTail& tail) {
  source.codes.empty() ? pack_panel(matrix, source, statistics, tail) : copy_codes(matrix, source);
}

void validate(const PackedMatrix& matrix) {
  check_plane(matrix, 0, code_bytes(matrix));
  check_plane(matrix, 1, scale_bytes(matrix));
}

void unpack_column(const PackedMatrix& matrix, Reading, int64_t column, std::span<float> out) {
  const int8_t* const codes = matrix.plane(0).as<int8_t>();
  const Float16* const scales = matrix.plane(1).as<Float16>();
  for (int64_t k = 0; k < matrix.k; ++k) {
    out[static_cast<size_t>(k)] = static_cast<float>(codes[code_index(matrix, column, k)]) *
                                  to_float(scales[tile_scale_index(matrix, column, k)]);
  }
}

int64_t bytes_read(const PackedMatrix& matrix, Reading) {
  return matrix.bytes();
}

}  // namespace

const FormatOperations& int8_operations() {
  static constexpr FormatOperations kOperations = {allocate<Format::kInt8>, pack_panel, nullptr, validate,
                                                   unpack_column,           bytes_read};
  return kOperations;
}

const FormatOperations& q8_0_operations() {
  static constexpr FormatOperations kOperations = {allocate<Format::kQ8_0>, pack_codes, nullptr, validate,
                                                   unpack_column,           bytes_read};
  return kOperations;
}

}  // namespace verbatim
