#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/kernel_table.h"
#include "kernels/scalar/multiply_add.h"

namespace verbatim::scalar {

/// Sixteen floats in plain C++: the reference for the other instruction sets' vectors.
struct F32x16 {
  /// The number of such vectors that a block of a matrix product keeps in registers.
  static constexpr int kSums = 1;
  float lane[16];

  VERBATIM_INLINE static F32x16 set(float value) {
    F32x16 v;
    for (float& x : v.lane) x = value;
    return v;
  }
  VERBATIM_INLINE static F32x16 load(const float* from) {
    F32x16 v;
    std::memcpy(v.lane, from, sizeof v.lane);
    return v;
  }
  VERBATIM_INLINE static F32x16 load(const BFloat16* from) {
    F32x16 v;
    for (int i = 0; i < 16; ++i) v.lane[i] = to_float(from[i]);
    return v;
  }
  VERBATIM_INLINE static F32x16 load(const uint8_t* from) {
    F32x16 v;
    for (int i = 0; i < 16; ++i) v.lane[i] = static_cast<float>(from[i]);
    return v;
  }
  VERBATIM_INLINE static F32x16 load(const Float16* from) {
    F32x16 v;
    for (int i = 0; i < 16; ++i) v.lane[i] = to_float(from[i]);
    return v;
  }
  /// Splits sixteen pairs: the first elements of all pairs, and the second.
  VERBATIM_INLINE static void load_pairs(const BFloat16* from, F32x16* even, F32x16* odd) {
    for (int i = 0; i < 16; ++i) {
      uint32_t pair;
      std::memcpy(&pair, from + 2 * i, sizeof pair);
      even->lane[i] = std::bit_cast<float>(pair << 16);
      odd->lane[i] = std::bit_cast<float>(pair & 0xffff0000u);
    }
  }
  /// 2^(exponent - 127) for each of sixteen biased exponents; 0 for the exponent 0.
  VERBATIM_INLINE static F32x16 from_exponents(const uint8_t* exponents) {
    F32x16 v;
    for (int i = 0; i < 16; ++i) v.lane[i] = std::bit_cast<float>(static_cast<uint32_t>(exponents[i]) << 23);
    return v;
  }
  VERBATIM_INLINE void store(float* to) const { std::memcpy(to, lane, sizeof lane); }
  VERBATIM_INLINE void store(BFloat16* to) const {
    for (int i = 0; i < 16; ++i) to[i] = to_bfloat16(lane[i]);
  }
  /// Integers, rounded to the nearest float.
  VERBATIM_INLINE static F32x16 from_integers(const int32_t* from) {
    F32x16 v;
    for (int i = 0; i < 16; ++i) v.lane[i] = static_cast<float>(from[i]);
    return v;
  }
  /// The lanes hold numbers from -32000 to 32000, which are rounded to the nearest integers, ties to even,
  /// and written as 256 · upper + lower: 64 of each.
  VERBATIM_INLINE static void store_two_int8(const F32x16 (&values)[4], int8_t* upper, int8_t* lower);
  /// The lanes hold integers from -127 to 127. The second and the third of every four change places.
  VERBATIM_INLINE void store_int8_quads(int8_t* to) const {
    constexpr int kOrder[4] = {0, 2, 1, 3};
    for (int i = 0; i < 16; ++i) to[i] = static_cast<int8_t>(lane[i / 4 * 4 + kOrder[i % 4]]);
  }
};

#define VERBATIM_LANES(name, expression)                          \
  VERBATIM_INLINE F32x16 name(const F32x16& a, const F32x16& b) { \
    F32x16 v;                                                     \
    for (int i = 0; i < 16; ++i) v.lane[i] = expression;          \
    return v;                                                     \
  }
VERBATIM_LANES(operator+, a.lane[i] + b.lane[i])
VERBATIM_LANES(operator-, a.lane[i] - b.lane[i])
VERBATIM_LANES(operator*, a.lane[i] * b.lane[i])
VERBATIM_LANES(operator/, a.lane[i] / b.lane[i])
// With a NaN the second operand comes out, as the processors' instructions do it.
VERBATIM_LANES(max, a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i])
VERBATIM_LANES(min, a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i])
#undef VERBATIM_LANES

/// a · b + c, rounded once.
VERBATIM_INLINE F32x16 fma(const F32x16& a, const F32x16& b, const F32x16& c) {
  F32x16 v;
  for (int i = 0; i < 16; ++i) v.lane[i] = multiply_add(a.lane[i], b.lane[i], c.lane[i]);
  return v;
}
/// a · b + c, rounded once, where a and b are BF16 numbers.
VERBATIM_INLINE F32x16 fma_of_bf16(const F32x16& a, const F32x16& b, const F32x16& c) {
  F32x16 v;
  for (int i = 0; i < 16; ++i) v.lane[i] = multiply_add_bf16(a.lane[i], b.lane[i], c.lane[i]);
  return v;
}

VERBATIM_INLINE F32x16 absolute(const F32x16& a) {
  F32x16 v;
  for (int i = 0; i < 16; ++i) v.lane[i] = __builtin_fabsf(a.lane[i]);
  return v;
}

/// To the nearest integer, ties to even, for magnitudes below 2^22.
VERBATIM_INLINE F32x16 round(const F32x16& a) {
  const F32x16 magic = F32x16::set(12582912.0f);  // 1.5 · 2^23: the sum's last bit is worth one
  return (a + magic) - magic;
}

/// a · 2^n for integers n in -126 .. 127, given as n + 1.5 · 2^23, and results in the normal range.
VERBATIM_INLINE F32x16 scale_by_power(const F32x16& a, const F32x16& shifted) {
  F32x16 v;
  for (int i = 0; i < 16; ++i) {
    const uint32_t exponent = std::bit_cast<uint32_t>(shifted.lane[i]) << 23;
    v.lane[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(a.lane[i]) + exponent);
  }
  return v;
}

VERBATIM_INLINE F32x16 zero_where_below(const F32x16& a, const F32x16& x, const F32x16& limit) {
  F32x16 v;
  for (int i = 0; i < 16; ++i) v.lane[i] = x.lane[i] < limit.lane[i] ? 0.0f : a.lane[i];
  return v;
}

/// The sum over a fixed tree: halves, quarters, pairs.
VERBATIM_INLINE float reduce_add(F32x16 v) {
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) v.lane[i] = v.lane[i] + v.lane[i + width];
  }
  return v.lane[0];
}

VERBATIM_INLINE float reduce_max(F32x16 v) {
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) v.lane[i] = v.lane[i] > v.lane[i + width] ? v.lane[i] : v.lane[i + width];
  }
  return v.lane[0];
}

VERBATIM_INLINE float reduce_first(const F32x16& v) {
  return v.lane[0];
}

VERBATIM_INLINE void F32x16::store_two_int8(const F32x16 (&values)[4], int8_t* upper, int8_t* lower) {
  for (int i = 0; i < 64; ++i) {
    const int32_t value = static_cast<int32_t>(round(values[i / 16]).lane[i % 16]);
    lower[i] = static_cast<int8_t>(value & 255);
    upper[i] = static_cast<int8_t>((value + 128) >> 8);
  }
}

}  // namespace verbatim::scalar
