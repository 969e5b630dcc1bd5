#include "formats/int4.h"

#include <algorithm>
#include <optional>

#include "base/matrix.h"
#include "formats/integer_grid.h"
#include "formats/tile_codes.h"

namespace verbatim {

namespace {

constexpr int kBits = 4;

/// The codes of a file for a group, less their zero points; fewer than the group where inputs end.
std::span<const int8_t> given_codes(const PanelSource& source, int64_t column, int64_t begin) {
  if (!source.codes_of_int4 || column >= source.column_count || begin >= source.inputs()) return {};
  const int64_t count = std::min(kScaleGroup, source.inputs() - begin);
  return source.codes.subspan(static_cast<size_t>(column * source.inputs() + begin),
                              static_cast<size_t>(count));
}

/// The grid that has codes of a file as they are; nothing if there is none, as `int4` has none for zero
/// points other than 8.
std::optional<IntegerGrid> given_grid(std::span<const int8_t> codes, Float16 scale, bool asymmetric) {
  const auto [lowest, highest] = std::ranges::minmax(codes);
  IntegerGrid grid = symmetric_grid(scale, kBits);
  if (asymmetric) grid.zero = static_cast<uint8_t>(std::max(0, -int{lowest}));
  if (lowest + grid.zero < 0 || highest + grid.zero > grid.last) return std::nullopt;
  return grid;
}

size_t scale_count(const PackedMatrix& matrix) {
  return static_cast<size_t>(matrix.columns * scale_groups(matrix));
}

template <Format kFormat>
PackedMatrix allocate(int64_t columns, int64_t k, Element, const MatrixStatistics&) {
  PackedMatrix matrix = make_matrix(kFormat, columns, k);
  matrix.planes.emplace_back(code_plane_bytes(matrix));
  matrix.planes.emplace_back(scale_count(matrix) * sizeof(Float16));
  if (kFormat == Format::kInt4Asymmetric) matrix.planes.emplace_back(scale_count(matrix));
  return matrix;
}

void pack_panel(PackedMatrix& matrix, const PanelSource& source, const MatrixStatistics&, PanelTail&) {
  const bool asymmetric = matrix.format == Format::kInt4Asymmetric;
  uint8_t* const codes = matrix.plane(0).as<uint8_t>();
  float weights[kScaleGroup];
  for (int64_t i = 0; i < kPanelWidth; ++i) {
    const int64_t column = source.panel * kPanelWidth + i;
    for (int64_t begin = 0; begin < matrix.k; begin += kScaleGroup) {
      const int64_t count = std::min(kScaleGroup, matrix.k - begin);
      for (int64_t j = 0; j < count; ++j) weights[j] = source.at(i, begin + j);
      const std::span<const int8_t> given = given_codes(source, i, begin);
      std::optional<IntegerGrid> kept;
      if (!given.empty()) {
        const int64_t first = i * ceil_div(source.inputs(), kInnerStep) + begin / kInnerStep;
        const Float16 scale = source.scales[static_cast<size_t>(first)];
        kept = given_grid(given, scale, asymmetric);
      }
      const IntegerGrid grid =
          kept ? *kept : best_grid({weights, static_cast<size_t>(count)}, kBits, asymmetric);
      const int64_t index = scale_index(matrix, column, begin);
      matrix.plane(1).as<Float16>()[index] = grid.scale;
      if (asymmetric) matrix.plane(2).as<uint8_t>()[index] = grid.zero;
      for (int64_t j = 0; j < count; ++j) {
        const bool keep = kept && j < std::ssize(given);
        const uint8_t code =
            keep ? static_cast<uint8_t>(given[static_cast<size_t>(j)] + grid.zero) : grid.code(weights[j]);
        put_code(codes, matrix, column, begin + j, code);
      }
    }
  }
}

void validate(const PackedMatrix& matrix) {
  check_plane(matrix, 0, code_plane_bytes(matrix));
  check_plane(matrix, 1, scale_count(matrix) * sizeof(Float16));
  if (matrix.format == Format::kInt4Asymmetric) check_plane(matrix, 2, scale_count(matrix));
}

void unpack_column(const PackedMatrix& matrix, Reading, int64_t column, std::span<float> out) {
  const uint8_t* const codes = matrix.plane(0).as<uint8_t>();
  for (int64_t k = 0; k < matrix.k; ++k) {
    const int64_t index = scale_index(matrix, column, k);
    IntegerGrid grid = symmetric_grid(matrix.plane(1).as<Float16>()[index], kBits);
    if (matrix.format == Format::kInt4Asymmetric) grid.zero = matrix.plane(2).as<uint8_t>()[index];
    out[static_cast<size_t>(k)] = grid.value(get_code(codes, matrix, column, k));
  }
}

int64_t bytes_read(const PackedMatrix& matrix, Reading) {
  return matrix.bytes();
}

template <Format kFormat>
const FormatOperations& operations_of() {
  static constexpr FormatOperations kOperations = {allocate<kFormat>, pack_panel,    nullptr,
                                                   validate,          unpack_column, bytes_read};
  return kOperations;
}

}  // namespace

const FormatOperations& int4_operations() {
  return operations_of<Format::kInt4>();
}
const FormatOperations& int4_asymmetric_operations() {
  return operations_of<Format::kInt4Asymmetric>();
}

}  // namespace verbatim
