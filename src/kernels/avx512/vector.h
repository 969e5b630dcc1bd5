#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/kernel_table.h"

namespace verbatim::avx512 {

/// Sixteen floats in one register. See scalar/vector.h for what each operation means.
struct F32x16 {
  /// The number of such vectors that a block of a matrix product keeps in registers.
  static constexpr int kSums = 16;
  __m512 lanes;

  VERBATIM_INLINE static F32x16 set(float value) { return {_mm512_set1_ps(value)}; }
  VERBATIM_INLINE static F32x16 load(const float* from) { return {_mm512_loadu_ps(from)}; }
  VERBATIM_INLINE static F32x16 load(const BFloat16* from) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
  }
  VERBATIM_INLINE static F32x16 load(const uint8_t* from) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))};
  }
  VERBATIM_INLINE static F32x16 load(const Float16* from) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)))};
  }
  VERBATIM_INLINE static void load_pairs(const BFloat16* from, F32x16* even, F32x16* odd) {
    const __m512i pairs = _mm512_loadu_si512(from);
    even->lanes = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
    odd->lanes =
        _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  VERBATIM_INLINE static F32x16 from_exponents(const uint8_t* exponents) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(exponents));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu8_epi32(bytes), 23))};
  }
  VERBATIM_INLINE void store(float* to) const { _mm512_storeu_ps(to, lanes); }
  // Not the hardware's conversion: that one flushes subnormals, and every path must round activations alike.
  VERBATIM_INLINE void store(BFloat16* to) const {
    const __m512i bits = _mm512_castps_si512(lanes);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(lanes, lanes, _CMP_UNORD_Q);
    const __m512i result = _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x400000));
    const __m256i halves = _mm512_cvtepi32_epi16(_mm512_srli_epi32(result, 16));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), halves);
  }
  VERBATIM_INLINE static F32x16 from_integers(const int32_t* from) {
    return {_mm512_cvtepi32_ps(_mm512_loadu_si512(from))};
  }
  VERBATIM_INLINE static void store_two_int8(const F32x16 (&values)[4], int8_t* upper, int8_t* lower) {
    const auto words = [&](int i) {
      return _mm512_packs_epi32(_mm512_cvtps_epi32(values[i].lanes), _mm512_cvtps_epi32(values[i + 1].lanes));
    };
    // Packing leaves quarters of each vector side by side: in order they are every fourth.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const auto store = [&](__m512i first, __m512i second, int8_t* to) {
      _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, _mm512_packs_epi16(first, second)));
    };
    const __m512i first = words(0);
    const __m512i second = words(2);
    const auto upper_byte = [](__m512i w) {
      return _mm512_srai_epi16(_mm512_add_epi16(w, _mm512_set1_epi16(128)), 8);
    };
    const auto lower_byte = [](__m512i w) { return _mm512_srai_epi16(_mm512_slli_epi16(w, 8), 8); };
    store(upper_byte(first), upper_byte(second), upper);
    store(lower_byte(first), lower_byte(second), lower);
  }
  VERBATIM_INLINE void store_int8_quads(int8_t* to) const {
    const __m128i bytes = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(lanes));
    const __m128i order = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(bytes, order));
  }
};

VERBATIM_INLINE F32x16 operator+(F32x16 a, F32x16 b) {
  return {_mm512_add_ps(a.lanes, b.lanes)};
}
VERBATIM_INLINE F32x16 operator-(F32x16 a, F32x16 b) {
  return {_mm512_sub_ps(a.lanes, b.lanes)};
}
VERBATIM_INLINE F32x16 operator*(F32x16 a, F32x16 b) {
  return {_mm512_mul_ps(a.lanes, b.lanes)};
}
VERBATIM_INLINE F32x16 operator/(F32x16 a, F32x16 b) {
  return {_mm512_div_ps(a.lanes, b.lanes)};
}
VERBATIM_INLINE F32x16 max(F32x16 a, F32x16 b) {
  return {_mm512_max_ps(a.lanes, b.lanes)};
}
VERBATIM_INLINE F32x16 min(F32x16 a, F32x16 b) {
  return {_mm512_min_ps(a.lanes, b.lanes)};
}
VERBATIM_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm512_fmadd_ps(a.lanes, b.lanes, c.lanes)};
}
VERBATIM_INLINE F32x16 fma_of_bf16(F32x16 a, F32x16 b, F32x16 c) {
  return fma(a, b, c);
}
VERBATIM_INLINE F32x16 absolute(F32x16 a) {
  return {_mm512_abs_ps(a.lanes)};
}
VERBATIM_INLINE F32x16 round(F32x16 a) {
  return {_mm512_roundscale_ps(a.lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
VERBATIM_INLINE F32x16 scale_by_power(F32x16 a, F32x16 shifted) {
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted.lanes), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a.lanes), exponent))};
}
VERBATIM_INLINE F32x16 zero_where_below(F32x16 a, F32x16 x, F32x16 limit) {
  const __mmask16 keep = _mm512_cmp_ps_mask(x.lanes, limit.lanes, _CMP_NLT_UQ);
  return {_mm512_maskz_mov_ps(keep, a.lanes)};
}
VERBATIM_INLINE float reduce_add(F32x16 v) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v.lanes), _mm512_extractf32x8_ps(v.lanes, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
VERBATIM_INLINE float reduce_max(F32x16 v) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v.lanes), _mm512_extractf32x8_ps(v.lanes, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
VERBATIM_INLINE float reduce_first(F32x16 v) {
  return _mm512_cvtss_f32(v.lanes);
}

}  // namespace verbatim::avx512
