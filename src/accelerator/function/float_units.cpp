#include "accelerator/function/float_units.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace verbatim::accelerator {

namespace {

constexpr uint32_t kSign = 0x80000000;
constexpr uint32_t kInfinity = 0x7f800000;
constexpr int kFractionBits = 23;
constexpr int kBias = 127;
constexpr int kHalfBias = 15;

/// A finite number: significand * 2^exponent.
struct Unpacked {
  uint64_t significand;
  int exponent;
};

Unpacked unpack_fp16(uint16_t bits) {
  const int field = bits >> 10 & 31;
  const uint64_t fraction = bits & 0x3ff;
  return {field == 0 ? fraction : fraction | 0x400, std::max(field, 1) - kHalfBias - 10};
}
Unpacked unpack_fp32(uint32_t bits) {
  const int field = static_cast<int>(bits >> kFractionBits & 255);
  const uint64_t fraction = bits & 0x7fffff;
  return {field == 0 ? fraction : fraction | 0x800000, std::max(field, 1) - kBias - kFractionBits};
}

/// Rounds significand * 2^exponent, with a sign, to FP32. The lowest bit of the significand stands for
/// whatever was lost below it.
uint32_t pack(uint32_t sign, uint64_t significand, int exponent) {
  if (significand == 0) return sign;
  const int width = static_cast<int>(std::bit_width(significand));
  // The exponent of the lowest bit that stays.
  const int lowest = std::max(exponent + width - (kFractionBits + 1), 1 - kBias - kFractionBits);
  const int shift = lowest - exponent;
  uint64_t kept = significand;
  if (shift > 63) {
    kept = 0;
  } else if (shift > 0) {
    kept = significand >> shift;
    const uint64_t rest = significand & ((uint64_t{1} << shift) - 1);
    const uint64_t half = uint64_t{1} << (shift - 1);
    if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  } else {
    kept = significand << -shift;
  }
  // A carry out of the fraction moves into the exponent by itself.
  const int field = lowest + kBias + kFractionBits;
  const uint64_t hidden = uint64_t{1} << kFractionBits;
  const uint64_t bits =
      kept < hidden ? kept : kept - hidden + (static_cast<uint64_t>(field) << kFractionBits);
  return sign | static_cast<uint32_t>(std::min<uint64_t>(bits, kInfinity));
}

bool is_nan(uint32_t bits) {
  return (bits & ~kSign) > kInfinity;
}
bool is_infinite(uint32_t bits) {
  return (bits & ~kSign) == kInfinity;
}

}  // namespace

uint32_t multiply_significands(uint32_t activation, uint32_t weight) {
  const uint32_t upper = activation * (weight >> 5);  // 11 by 6 bits: the hidden one is in this half
  const uint32_t lower = activation * (weight & 31);
  return (upper << 5) + lower;
}

uint32_t full_product(uint16_t activation, uint16_t weight) {
  const uint32_t sign = static_cast<uint32_t>((activation >> 15 ^ weight >> 14) & 1) << 31;
  const auto fp16 = static_cast<uint16_t>(weight & 0x3fff);
  if ((activation >> 10 & 31) == 31) {
    const bool infinite = (activation & 0x3ff) == 0;
    return infinite && fp16 != 0 ? sign | kInfinity : kNan;
  }
  const Unpacked a = unpack_fp16(activation);
  const Unpacked w = unpack_fp16(fp16);
  return pack(
      sign, multiply_significands(static_cast<uint32_t>(a.significand), static_cast<uint32_t>(w.significand)),
      a.exponent + w.exponent);
}

uint32_t draft_product(uint16_t activation, uint8_t weight) {
  const uint32_t sign = static_cast<uint32_t>((activation >> 15 ^ weight >> 4) & 1) << 31;
  if ((activation >> 10 & 31) == 31) return (activation & 0x3ff) == 0 ? sign | kInfinity : kNan;
  const Unpacked a = unpack_fp16(activation);
  return pack(sign, a.significand, a.exponent + (weight & 15) - kHalfBias);
}

uint32_t add_fp32(uint32_t a, uint32_t b) {
  if (is_nan(a) || is_nan(b)) return kNan;
  if (is_infinite(a)) return is_infinite(b) && a != b ? kNan : a;
  if (is_infinite(b)) return b;
  if ((a & ~kSign) < (b & ~kSign)) std::swap(a, b);
  const Unpacked large = unpack_fp32(a);
  const Unpacked small = unpack_fp32(b);
  // Three bits below the larger number's lowest one, the last of which gathers all further ones.
  constexpr int kGuard = 3;
  const uint64_t wide = large.significand << kGuard;
  const int shift = std::min(large.exponent - small.exponent, 63);
  const uint64_t shifted = small.significand << kGuard >> shift;
  const bool lost = shifted << shift != small.significand << kGuard;
  const uint64_t aligned = shifted | (lost ? 1 : 0);
  const bool subtract = ((a ^ b) & kSign) != 0;
  const uint64_t sum = subtract ? wide - aligned : wide + aligned;
  // Equal numbers of different signs give +0; two zeros of a sign keep it.
  if (sum == 0) return subtract ? 0 : a & kSign;
  return pack(a & kSign, sum, large.exponent - kGuard);
}

uint32_t multiply_fp32(uint32_t a, uint32_t b) {
  const uint32_t sign = (a ^ b) & kSign;
  if (is_nan(a) || is_nan(b)) return kNan;
  const bool zero = (a & ~kSign) == 0 || (b & ~kSign) == 0;
  if (is_infinite(a) || is_infinite(b)) return zero ? kNan : sign | kInfinity;
  const Unpacked x = unpack_fp32(a);
  const Unpacked y = unpack_fp32(b);
  return pack(sign, x.significand * y.significand, x.exponent + y.exponent);
}

}  // namespace verbatim::accelerator
