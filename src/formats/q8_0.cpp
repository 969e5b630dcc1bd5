#include "formats/q8_0.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "formats/int8.h"
#include "formats/tile_codes.h"

namespace verbatim {

namespace {

size_t scale_bytes(const PackedMatrix& matrix) {
  return static_cast<size_t>(matrix.columns * matrix.tiles()) * sizeof(Float16);
}

PackedMatrix allocate(int64_t columns, int64_t k, Element, const MatrixStatistics&) {
  PackedMatrix matrix = make_matrix(Format::kQ8_0, columns, k);
  matrix.planes.emplace_back(code_plane_bytes(matrix));
  matrix.planes.emplace_back(scale_bytes(matrix));
  matrix.planes.emplace_back(code_plane_bytes(matrix));
  return matrix;
}

/// The codes of up to 32 weights of a column from k on, and zeros beyond them.
Int8Group group_of(const PanelSource& source, int64_t column, int64_t k) {
  if (source.codes.empty()) {
    std::array<float, kInnerStep> weights;
    for (int64_t j = 0; j < kInnerStep; ++j) weights[static_cast<size_t>(j)] = source.at(column, k + j);
    return quantize_int8_group(weights);
  }
  Int8Group group{};
  if (column >= source.column_count || k >= source.inputs()) return group;
  const int64_t first = column * source.inputs() + k;
  group.scale = source.scales[static_cast<size_t>(first / kInnerStep)];
  for (int64_t j = 0; j < kInnerStep; ++j) group.codes[j] = source.codes[static_cast<size_t>(first + j)];
  return group;
}

void pack_panel(PackedMatrix& matrix, const PanelSource& source, const MatrixStatistics&, PanelTail&) {
  auto* const upper = matrix.plane(0).as<uint8_t>();
  auto* const scales = matrix.plane(1).as<Float16>();
  auto* const lower = matrix.plane(2).as<uint8_t>();
  for (int64_t i = 0; i < kPanelWidth; ++i) {
    const int64_t column = source.panel * kPanelWidth + i;
    for (int64_t begin = 0; begin < matrix.k; begin += kInnerStep) {
      const Int8Group group = group_of(source, i, begin);
      scales[tile_scale_index(matrix, column, begin)] = group.scale;
      for (int64_t j = 0; j < kInnerStep; ++j) {
        const int code = group.codes[j] + 128;
        put_code(upper, matrix, column, begin + j, static_cast<uint8_t>(code >> 4));
        put_code(lower, matrix, column, begin + j, static_cast<uint8_t>(code & 15));
      }
    }
  }
}

void validate(const PackedMatrix& matrix) {
  if (matrix.planes.size() == 2) {
    bad_input(
        "a matrix in q8_0 has whole codes, as earlier versions of this program packed them: pack the "
        "model again");
  }
  check_plane(matrix, 0, code_plane_bytes(matrix));
  check_plane(matrix, 1, scale_bytes(matrix));
  check_plane(matrix, 2, code_plane_bytes(matrix));
}

void unpack_column(const PackedMatrix& matrix, Reading reading, int64_t column, std::span<float> out) {
  const auto* const upper = matrix.plane(0).as<const uint8_t>();
  const auto* const scales = matrix.plane(1).as<const Float16>();
  const auto* const lower = matrix.plane(2).as<const uint8_t>();
  for (int64_t k = 0; k < matrix.k; ++k) {
    const float base = 16.0f * (static_cast<float>(get_code(upper, matrix, column, k)) - 8.0f);
    const float rest =
        reading == Reading::kQ8_0Draft ? 7.5f : static_cast<float>(get_code(lower, matrix, column, k));
    out[static_cast<size_t>(k)] = (base + rest) * to_float(scales[tile_scale_index(matrix, column, k)]);
  }
}

int64_t bytes_read(const PackedMatrix& matrix, Reading reading) {
  const auto drafted = static_cast<int64_t>(matrix.plane(0).size() + matrix.plane(1).size());
  return reading == Reading::kQ8_0Draft ? drafted : matrix.bytes();
}

}  // namespace

const FormatOperations& q8_0_operations() {
  static constexpr FormatOperations kOperations = {allocate, pack_panel,    nullptr,
                                                   validate, unpack_column, bytes_read};
  return kOperations;
}

bool upper_halves_tell(const PackedMatrix& matrix) {
  constexpr size_t kLookedAt = 4096;  // bytes of two codes
  const auto* const upper = matrix.plane(0).as<const uint8_t>();
  const auto small = [](int half) { return half >= 6 && half <= 9; };  // of codes from -32 to 31
  const bool tell = std::any_of(upper, upper + std::min(matrix.plane(0).size(), kLookedAt),
                                [&](uint8_t byte) { return !small(byte & 15) || !small(byte >> 4); });
  if (tell) return true;
  constexpr size_t kPlaces = 64;  // all over the matrix
  const auto* const scales = matrix.plane(1).as<const Float16>();
  const size_t count = matrix.plane(1).size() / sizeof(Float16);
  for (size_t i = 0; i < kPlaces; ++i) {
    if (to_float(scales[i * count / kPlaces]) != 0.0f) return false;
  }
  return true;
}

}  // namespace verbatim
