#include "formats/mxbf16.h"

#include <bit>
#include <vector>

#include "base/error.h"
#include "formats/escaped_weights.h"
#include "formats/mxfp4.h"
#include "formats/tile_codes.h"

namespace verbatim {

namespace {

constexpr int kEscaped = 3;
constexpr int64_t kRestBytes = 512;

/// The first magnitude of each level's run under the exponent 0.
constexpr int kStarts[8] = {-511, -255, -64, 33, 96, 161, 224, 289};

size_t tile_count(const PackedMatrix& matrix) {
  return static_cast<size_t>(matrix.panels() * matrix.tiles());
}

PackedMatrix allocate(int64_t columns, int64_t k, Element element, const MatrixStatistics&) {
  if (element != Element::kBf16)
    bad_input("mxbf16 stores BF16 weights only: use bsfp or f16 for F16 weights");
  PackedMatrix matrix = make_matrix(Format::kMxbf16, columns, k);
  matrix.planes.emplace_back(code_plane_bytes(matrix));
  matrix.planes.emplace_back(tile_count(matrix) * kPanelWidth);
  matrix.planes.emplace_back(tile_count(matrix) * kRestBytes);
  add_count_plane(matrix);
  return matrix;
}

/// The place of a weight in its half tile, as unpacked.
uint8_t position(int64_t column, int64_t k) {
  return static_cast<uint8_t>(k % 16 / 2 * 32 + column % kPanelWidth * 2 + k % 2);
}

void pack_panel(PackedMatrix& matrix, const PanelSource& source, const MatrixStatistics&, PanelTail& tail) {
  pack_mxfp4_panel(matrix, source);
  const uint8_t* const codes = matrix.plane(0).as<uint8_t>();
  const uint8_t* const scales = matrix.plane(1).as<uint8_t>();
  uint8_t* const places = matrix.plane(2).as<uint8_t>();
  uint8_t* const counts = matrix.plane(kEscaped).as<uint8_t>();
  for (int64_t begin = 0; begin < matrix.k; begin += 16) {
    HalfTile half;
    for (int64_t i = 0; i < kPanelWidth; ++i) {
      const int64_t column = source.panel * kPanelWidth + i;
      for (int64_t k = begin; k < begin + 16; ++k) {
        const uint16_t bits = to_bfloat16(source.at(i, k)).bits;
        const int magnitude = bits & 0x7fff;
        const int level = get_code(codes, matrix, column, k) & 7;
        const int place = magnitude - kStarts[level] - (scales[tile_scale_index(matrix, column, k)] << 7);
        const bool coded = place >= 0 && place <= 255;
        if (coded) {
          places[tile_index(matrix, column, k) * kRestBytes + rest_byte(column, k)] =
              static_cast<uint8_t>(place);
        }
        half.add(position(column, k), bits, !coded);
      }
    }
    counts[(source.panel * matrix.tiles() + begin / kInnerStep) * 2 + begin / 16 % 2] = half.finish(tail);
  }
}

void finish(PackedMatrix& matrix, std::span<const PanelTail> tails) {
  gather_escaped_weights(matrix, kEscaped, tails);
}

void validate(const PackedMatrix& matrix) {
  check_plane(matrix, 0, code_plane_bytes(matrix));
  check_plane(matrix, 1, tile_count(matrix) * kPanelWidth);
  check_plane(matrix, 2, tile_count(matrix) * kRestBytes);
  validate_escaped_weights(matrix, kEscaped);
}

void unpack_column(const PackedMatrix& matrix, Reading reading, int64_t column, std::span<float> out) {
  if (reading == Reading::kMxbf16Draft) {
    mxfp4_operations().unpack_column(matrix, reading, column, out);
    return;
  }
  const uint8_t* const codes = matrix.plane(0).as<uint8_t>();
  const uint8_t* const scales = matrix.plane(1).as<uint8_t>();
  const uint8_t* const places = matrix.plane(2).as<uint8_t>();
  std::vector<uint16_t> panel(static_cast<size_t>(matrix.k * kPanelWidth));
  const auto index = [&](int64_t k) { return static_cast<size_t>(k / 16 * 256 + position(column, k)); };
  for (int64_t k = 0; k < matrix.k; ++k) {
    const int code = get_code(codes, matrix, column, k);
    const int exponent = scales[tile_scale_index(matrix, column, k)];
    const int place = places[tile_index(matrix, column, k) * kRestBytes + rest_byte(column, k)];
    panel[index(k)] =
        static_cast<uint16_t>((code & 8) << 12 | ((kStarts[code & 7] + (exponent << 7) + place) & 0x7fff));
  }
  apply_escaped_weights(matrix, kEscaped, column / kPanelWidth, panel);
  for (int64_t k = 0; k < matrix.k; ++k) out[static_cast<size_t>(k)] = to_float(BFloat16{panel[index(k)]});
}

int64_t bytes_read(const PackedMatrix& matrix, Reading reading) {
  return reading == Reading::kMxbf16Draft
             ? static_cast<int64_t>(matrix.plane(0).size() + matrix.plane(1).size())
             : matrix.bytes();
}

}  // namespace

const FormatOperations& mxbf16_operations() {
  static constexpr FormatOperations kOperations = {allocate, pack_panel,    finish,
                                                   validate, unpack_column, bytes_read};
  return kOperations;
}

}  // namespace verbatim
