#include "formats/int8.h"

#include <algorithm>
#include <array>
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

PackedMatrix allocate(int64_t columns, int64_t k, Element, const MatrixStatistics&) {
  PackedMatrix matrix = make_matrix(Format::kInt8, columns, k);
  matrix.planes.emplace_back(code_bytes(matrix));
  matrix.planes.emplace_back(scale_bytes(matrix));
  return matrix;
}

void pack_panel(PackedMatrix& matrix, const PanelSource& source, const MatrixStatistics&, PanelTail&) {
  int8_t* const codes = matrix.plane(0).as<int8_t>();
  Float16* const scales = matrix.plane(1).as<Float16>();
  std::array<float, kInnerStep> weights;
  for (int64_t i = 0; i < kPanelWidth; ++i) {
    const int64_t column = source.panel * kPanelWidth + i;
    for (int64_t begin = 0; begin < matrix.k; begin += kInnerStep) {
      for (int64_t j = 0; j < kInnerStep; ++j) weights[static_cast<size_t>(j)] = source.at(i, begin + j);
      const Int8Group group = quantize_int8_group(weights);
      scales[tile_scale_index(matrix, column, begin)] = group.scale;
      for (int64_t j = 0; j < kInnerStep; ++j) codes[code_index(matrix, column, begin + j)] = group.codes[j];
    }
  }
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

Int8Group quantize_int8_group(std::span<const float, kInnerStep> weights) {
  float largest = 0.0f;
  for (const float w : weights) {
    if (std::isfinite(w)) largest = std::max(largest, std::fabs(w));
  }
  Int8Group group{.scale = to_float16(std::min(largest / 127.0f, kLargestF16)), .codes = {}};
  const float inverse = group.scale.bits != 0 ? 1.0f / to_float(group.scale) : 0.0f;
  for (size_t i = 0; i < kInnerStep; ++i) {
    const float code = std::isfinite(weights[i]) ? std::nearbyint(weights[i] * inverse) : 0.0f;
    group.codes[i] = static_cast<int8_t>(std::clamp(code, -127.0f, 127.0f));
  }
  return group;
}

const FormatOperations& int8_operations() {
  static constexpr FormatOperations kOperations = {allocate, pack_panel,    nullptr,
                                                   validate, unpack_column, bytes_read};
  return kOperations;
}

}  // namespace verbatim
