#include "formats/mxfp4.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "formats/tile_codes.h"

namespace verbatim {

namespace {

constexpr float kMagnitudes[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
constexpr int kMinExponent = 64;
constexpr int kZeroExponent = 3;
constexpr int kMaxExponent = 147;

/// The code of the E2M1 magnitude nearest to x ≥ 0, ties to the even code: how many midpoints between
/// neighbours x has passed. The midpoint itself stays with the lower neighbour where that one's code is even.
uint8_t round_to_e2m1(float x) {
  return static_cast<uint8_t>((x > 0.25f) + (x >= 0.75f) + (x > 1.25f) + (x >= 1.75f) + (x > 2.5f) +
                              (x >= 3.5f) + (x > 5.0f));
}

size_t scale_bytes(const PackedMatrix& matrix) {
  return static_cast<size_t>(matrix.columns * matrix.tiles());
}

PackedMatrix allocate(int64_t columns, int64_t k, Element, const MatrixStatistics&) {
  PackedMatrix matrix = make_matrix(Format::kMxfp4, columns, k);
  matrix.planes.emplace_back(code_plane_bytes(matrix));
  matrix.planes.emplace_back(scale_bytes(matrix));
  return matrix;
}

void pack_panel(PackedMatrix& matrix, const PanelSource& source, const MatrixStatistics&, PanelTail&) {
  pack_mxfp4_panel(matrix, source);
}

void validate(const PackedMatrix& matrix) {
  check_plane(matrix, 0, code_plane_bytes(matrix));
  check_plane(matrix, 1, scale_bytes(matrix));
}

void unpack_column(const PackedMatrix& matrix, Reading, int64_t column, std::span<float> out) {
  const uint8_t* const codes = matrix.plane(0).as<uint8_t>();
  const uint8_t* const scales = matrix.plane(1).as<uint8_t>();
  for (int64_t k = 0; k < matrix.k; ++k) {
    out[static_cast<size_t>(k)] =
        mxfp4_value(get_code(codes, matrix, column, k), scales[tile_scale_index(matrix, column, k)]);
  }
}

int64_t bytes_read(const PackedMatrix& matrix, Reading) {
  return matrix.bytes();
}

}  // namespace

Mxfp4Group quantize_mxfp4(std::span<const float, 32> weights) {
  float largest = 0.0f;
  for (const float w : weights) largest = std::max(largest, std::fabs(w));  // max(x, NaN) is x
  Mxfp4Group group{};
  const int biased = static_cast<int>(std::bit_cast<uint32_t>(largest) >> 23);
  const int exponent = largest > 0.0f ? std::clamp(biased - 2, kMinExponent, kMaxExponent) : kZeroExponent;
  group.exponent = static_cast<uint8_t>(exponent);
  // Two factors, because 2^(127 - exponent) alone can be beyond the largest float.
  const float inverse = std::ldexp(1.0f, (127 - exponent) / 2);
  const float inverse_rest = std::ldexp(1.0f, (127 - exponent) - (127 - exponent) / 2);
  for (size_t i = 0; i < 32; ++i) {
    const float w = std::isnan(weights[i]) ? 0.0f : weights[i];
    const float magnitude = std::fabs(w) * inverse * inverse_rest;
    group.codes[i] = static_cast<uint8_t>(round_to_e2m1(magnitude) | (std::signbit(w) ? 8 : 0));
  }
  return group;
}

float mxfp4_value(uint8_t code, uint8_t exponent) {
  const float magnitude = std::ldexp(kMagnitudes[code & 7], exponent - 127);
  return (code & 8) != 0 ? -magnitude : magnitude;
}

void pack_mxfp4_panel(PackedMatrix& matrix, const PanelSource& source) {
  uint8_t* const codes = matrix.plane(0).as<uint8_t>();
  uint8_t* const scales = matrix.plane(1).as<uint8_t>();
  std::array<float, 32> weights;
  for (int64_t i = 0; i < kPanelWidth; ++i) {
    const int64_t column = source.panel * kPanelWidth + i;
    for (int64_t begin = 0; begin < matrix.k; begin += kInnerStep) {
      for (int64_t j = 0; j < kInnerStep; ++j) weights[static_cast<size_t>(j)] = source.at(i, begin + j);
      const Mxfp4Group group = quantize_mxfp4(weights);
      scales[tile_scale_index(matrix, column, begin)] = group.exponent;
      for (int64_t j = 0; j < kInnerStep; ++j) put_code(codes, matrix, column, begin + j, group.codes[j]);
    }
  }
}

const FormatOperations& mxfp4_operations() {
  static constexpr FormatOperations kOperations = {allocate, pack_panel,    nullptr,
                                                   validate, unpack_column, bytes_read};
  return kOperations;
}

}  // namespace verbatim
