#include "formats/mxfp4.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/matrix.h"

namespace verbatim {

namespace {

constexpr int64_t kGroupBytes = 256;
constexpr float kMagnitudes[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
constexpr int kMinExponent = 2;
constexpr int kMaxExponent = 252;

/// The code of the E2M1 magnitude nearest to x ≥ 0, ties to the even code: how many midpoints between
/// neighbours x has passed. The midpoint itself stays with the lower neighbour where that one's code is even.
uint8_t round_to_e2m1(float x) {
  return static_cast<uint8_t>((x > 0.25f) + (x >= 0.75f) + (x > 1.25f) + (x >= 1.75f) + (x > 2.5f) +
                              (x >= 3.5f) + (x > 5.0f));
}

/// The byte of a weight's code, and whether it is the high nibble there.
int64_t byte_index(int64_t groups, int64_t column, int64_t k) {
  const int64_t panel = column / kPanelWidth;
  const int64_t block = k % kInnerStep / 8;
  return (panel * groups + k / kInnerStep) * kGroupBytes + block * 64 + column % kPanelWidth * 4 + k % 4;
}

}  // namespace

Mxfp4Matrix::Mxfp4Matrix(int64_t columns_, int64_t k_)
    : columns(round_up(columns_, kPanelWidth)),
      k(round_up(k_, kInnerStep)),
      codes(static_cast<size_t>(columns * k / 2)),
      scales(static_cast<size_t>(columns * k / kInnerStep)) {}

Mxfp4Panels Mxfp4Matrix::panels(int64_t first, int64_t count) const {
  const int64_t groups = k / kInnerStep;
  return {codes.data() + first * groups * kGroupBytes, scales.data() + first * groups * kPanelWidth, count};
}

Mxfp4Group quantize_mxfp4(std::span<const float, 32> weights) {
  float largest = 0.0f;
  for (const float w : weights) largest = std::max(largest, std::fabs(w));  // max(x, NaN) is x
  Mxfp4Group group{};
  int exponent = 127;
  if (largest > 0.0f) {
    const int biased = static_cast<int>(std::bit_cast<uint32_t>(largest) >> 23);
    exponent = std::clamp(biased - 2, kMinExponent, kMaxExponent);
  }
  group.exponent = static_cast<uint8_t>(exponent);
  // Two factors, because 2^(127 - exponent) alone can be subnormal.
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

void pack_mxfp4_column(Mxfp4Matrix& matrix, int64_t column, std::span<const float> weights) {
  const int64_t groups = matrix.k / kInnerStep;
  const int64_t panel = column / kPanelWidth;
  const int64_t count = static_cast<int64_t>(weights.size());
  for (int64_t g = 0; g * kInnerStep < count; ++g) {
    std::array<float, 32> padded{};
    const int64_t begin = g * kInnerStep;
    std::copy_n(weights.data() + begin, std::min(kInnerStep, count - begin), padded.data());
    const Mxfp4Group group = quantize_mxfp4(padded);
    matrix.scales[static_cast<size_t>((panel * groups + g) * kPanelWidth + column % kPanelWidth)] =
        group.exponent;
    uint8_t* const bytes = matrix.codes.data() + byte_index(groups, column, begin);
    for (size_t i = 0; i < 16; ++i) {  // byte i % 4 of block i / 4
      const size_t low = i / 4 * 8 + i % 4;
      bytes[i / 4 * 64 + i % 4] = static_cast<uint8_t>(group.codes[low] | group.codes[low + 4] << 4);
    }
  }
}

void unpack_mxfp4_column(const Mxfp4Matrix& matrix, int64_t column, std::span<float> out) {
  const int64_t groups = matrix.k / kInnerStep;
  for (int64_t k = 0; k < matrix.k; ++k) {
    const uint8_t byte = matrix.codes[static_cast<size_t>(byte_index(groups, column, k))];
    const int64_t scale =
        (column / kPanelWidth * groups + k / kInnerStep) * kPanelWidth + column % kPanelWidth;
    const uint8_t code = k / 4 % 2 == 1 ? byte >> 4 : byte & 15;
    out[static_cast<size_t>(k)] = mxfp4_value(code, matrix.scales[static_cast<size_t>(scale)]);
  }
}

}  // namespace verbatim
