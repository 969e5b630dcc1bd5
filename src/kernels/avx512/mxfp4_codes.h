#pragma once

#include "kernels/avx512/vector.h"

namespace verbatim::avx512 {

/// Looks sixteen bytes per 128-bit lane up by the low nibbles of `codes`.
VERBATIM_INLINE __m512i look_up(__m128i table, __m512i codes) {
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), _mm512_and_si512(codes, _mm512_set1_epi8(15)));
}

/// The parts of a late-scaling MXFP4 product that AVX-512 with and without VNNI share. Weights become
/// unsigned bytes, twice the E2M1 value plus kOffset, because the dot products want one unsigned operand.
struct DotBase {
  using Sum = __m512i;
  static constexpr int32_t kOffset = 12;

  VERBATIM_INLINE static Sum zero() { return _mm512_setzero_si512(); }
  VERBATIM_INLINE static __m512i load(const uint8_t* codes) { return _mm512_loadu_si512(codes); }
  VERBATIM_INLINE static __m128i table() {
    return _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
  }
  VERBATIM_INLINE static __m512i low(__m512i codes) { return look_up(table(), codes); }
  VERBATIM_INLINE static __m512i high(__m512i codes) { return look_up(table(), _mm512_srli_epi16(codes, 4)); }
  VERBATIM_INLINE static __m512i broadcast(const int8_t* quad) {
    int32_t four;
    __builtin_memcpy(&four, quad, sizeof four);
    return _mm512_set1_epi32(four);
  }
  VERBATIM_INLINE static Sum subtract(Sum sum, int32_t value) {
    return _mm512_sub_epi32(sum, _mm512_set1_epi32(value));
  }
  VERBATIM_INLINE static F32x16 to_float(Sum sum) { return {_mm512_cvtepi32_ps(sum)}; }
};

}  // namespace verbatim::avx512
