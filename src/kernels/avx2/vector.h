#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/kernel_table.h"

namespace verbatim::avx2 {

/// Eight BF16 numbers, rounded to nearest even, NaN kept, in the low halves of 32-bit lanes.
VERBATIM_INLINE __m256i round_to_bf16(__m256 value) {
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i nan = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, nan, is_nan), 16);
}

/// Sixteen floats in two registers. See scalar/vector.h for what each operation means.
struct F32x16 {
  /// The number of such vectors that a block of a matrix product keeps in registers.
  static constexpr int kSums = 4;
  /// Whether blocks of five rows, and of three with two panels, keep their sums in registers, too.
  static constexpr bool kOddBlocks = true;
  __m256 low;
  __m256 high;

  VERBATIM_INLINE static F32x16 set(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
  VERBATIM_INLINE static F32x16 load(const float* from) {
    return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
  }
  VERBATIM_INLINE static __m256 widen(const BFloat16* from) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  VERBATIM_INLINE static F32x16 load(const BFloat16* from) { return {widen(from), widen(from + 8)}; }
  VERBATIM_INLINE static F32x16 load(const uint8_t* from) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)))};
  }
  VERBATIM_INLINE static F32x16 load(const Float16* from) {
    const __m128i* const halves = reinterpret_cast<const __m128i*>(from);
    return {_mm256_cvtph_ps(_mm_loadu_si128(halves)), _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
  }
  VERBATIM_INLINE static void load_pairs(const BFloat16* from, F32x16* even, F32x16* odd) {
    const __m256i mask = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 16));
    even->low = _mm256_castsi256_ps(_mm256_slli_epi32(first, 16));
    even->high = _mm256_castsi256_ps(_mm256_slli_epi32(second, 16));
    odd->low = _mm256_castsi256_ps(_mm256_and_si256(first, mask));
    odd->high = _mm256_castsi256_ps(_mm256_and_si256(second, mask));
  }
  /// The odd numbers of load_pairs(), loaded when `sum` is known: sixteen registers have no room for them
  /// beside the even ones, and a compiler left to itself loads both at once and puts sums aside.
  VERBATIM_INLINE static F32x16 load_odd_behind(const F32x16& sum, const BFloat16* from) {
    const __m256 known = sum.high;
    __asm__("" : "+r"(from) : "x"(known));
    F32x16 even;
    F32x16 odd;
    load_pairs(from, &even, &odd);
    return odd;
  }
  VERBATIM_INLINE static F32x16 from_exponents(const uint8_t* exponents) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(exponents));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(bytes), 23)),
            _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)), 23))};
  }
  VERBATIM_INLINE void store(float* to) const {
    _mm256_storeu_ps(to, low);
    _mm256_storeu_ps(to + 8, high);
  }
  VERBATIM_INLINE void store(BFloat16* to) const {
    const __m256i packed = _mm256_packus_epi32(round_to_bf16(low), round_to_bf16(high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permute4x64_epi64(packed, 0xd8));
  }
  VERBATIM_INLINE static F32x16 from_integers(const int32_t* from) {
    const __m256i* const halves = reinterpret_cast<const __m256i*>(from);
    return {_mm256_cvtepi32_ps(_mm256_loadu_si256(halves)),
            _mm256_cvtepi32_ps(_mm256_loadu_si256(halves + 1))};
  }
  VERBATIM_INLINE static void store_two_int8(const F32x16 (&values)[4], int8_t* upper, int8_t* lower) {
    for (int i = 0; i < 4; ++i) values[i].store_two_int8(upper + 16 * i, lower + 16 * i);
  }
  VERBATIM_INLINE void store_two_int8(int8_t* upper, int8_t* lower) const {
    const __m256i packed = _mm256_packs_epi32(_mm256_cvtps_epi32(low), _mm256_cvtps_epi32(high));
    const __m256i words = _mm256_permute4x64_epi64(packed, 0xd8);
    const __m256i uppers = _mm256_srai_epi16(_mm256_add_epi16(words, _mm256_set1_epi16(128)), 8);
    const __m256i lowers = _mm256_and_si256(words, _mm256_set1_epi16(255));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(upper),
                     _mm_packs_epi16(_mm256_castsi256_si128(uppers), _mm256_extracti128_si256(uppers, 1)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(lower),
                     _mm_packus_epi16(_mm256_castsi256_si128(lowers), _mm256_extracti128_si256(lowers, 1)));
  }
  VERBATIM_INLINE void store_int8_quads(int8_t* to) const {
    const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(low), _mm256_cvtps_epi32(high));
    const __m256i ordered = _mm256_permute4x64_epi64(words, 0xd8);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
    const __m128i order = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(bytes, order));
  }
};

VERBATIM_INLINE F32x16 operator+(const F32x16& a, const F32x16& b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
VERBATIM_INLINE F32x16 operator-(const F32x16& a, const F32x16& b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
VERBATIM_INLINE F32x16 operator*(const F32x16& a, const F32x16& b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
VERBATIM_INLINE F32x16 operator/(const F32x16& a, const F32x16& b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
VERBATIM_INLINE F32x16 max(const F32x16& a, const F32x16& b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
VERBATIM_INLINE F32x16 min(const F32x16& a, const F32x16& b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}
VERBATIM_INLINE F32x16 fma(const F32x16& a, const F32x16& b, const F32x16& c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
VERBATIM_INLINE F32x16 fma_of_bf16(const F32x16& a, const F32x16& b, const F32x16& c) {
  return fma(a, b, c);
}
VERBATIM_INLINE F32x16 absolute(const F32x16& a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
}
VERBATIM_INLINE F32x16 round(const F32x16& a) {
  constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(a.low, kMode), _mm256_round_ps(a.high, kMode)};
}
VERBATIM_INLINE F32x16 scale_by_power(const F32x16& a, const F32x16& shifted) {
  const auto scaled = [](__m256 value, __m256 power) {
    const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(power), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(value), exponent));
  };
  return {scaled(a.low, shifted.low), scaled(a.high, shifted.high)};
}
VERBATIM_INLINE F32x16 zero_where_below(const F32x16& a, const F32x16& x, const F32x16& limit) {
  return {_mm256_andnot_ps(_mm256_cmp_ps(x.low, limit.low, _CMP_LT_OQ), a.low),
          _mm256_andnot_ps(_mm256_cmp_ps(x.high, limit.high, _CMP_LT_OQ), a.high)};
}
VERBATIM_INLINE float reduce_add(const F32x16& v) {
  const __m256 eight = _mm256_add_ps(v.low, v.high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
VERBATIM_INLINE float reduce_max(const F32x16& v) {
  const __m256 eight = _mm256_max_ps(v.low, v.high);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
VERBATIM_INLINE float reduce_first(const F32x16& v) {
  return _mm256_cvtss_f32(v.low);
}

}  // namespace verbatim::avx2
