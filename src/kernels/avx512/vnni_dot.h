#pragma once

#include "kernels/avx512/dot.h"

namespace verbatim::avx512 {

/// The parts of an integer product with VNNI. Sums have 32 bits, so open() and close() do nothing. Signed
/// weights become unsigned by adding 128.
struct VnniDot : DotBase {
  using Partial = Sum;
  static constexpr int32_t kInt8Offset = 128;
  static constexpr int kCodeStreams = 4;
  static constexpr int kCodeSums = 16;
  static constexpr bool kWholeBytes = true;

  VERBATIM_INLINE static Bytes int8(const uint8_t* codes) {
    return _mm512_xor_si512(load(codes), _mm512_set1_epi8(static_cast<char>(0x80)));
  }
  /// Merges two planes of codes: computes 16 · upper + lower for the low and for the high nibbles.
  VERBATIM_INLINE static void merge(Bytes upper, Bytes lower, Bytes* low, Bytes* high) {
    constexpr int kSelect = 0xca;  // the second where the mask has ones, the third where it has zeros
    const __m512i mask = _mm512_set1_epi8(15);
    *low = _mm512_ternarylogic_epi64(mask, lower, _mm512_slli_epi16(upper, 4), kSelect);
    *high = _mm512_ternarylogic_epi64(mask, _mm512_srli_epi16(lower, 4), upper, kSelect);
  }
  VERBATIM_INLINE static Bytes shift_bytes(Bytes bytes, Sum shifts) {
    return _mm512_sllv_epi32(bytes, shifts);
  }
  VERBATIM_INLINE static Sum negative_offsets(const uint8_t* first, const uint8_t* second) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(second));
    const __m256i pairs = _mm256_set_m128i(_mm_unpackhi_epi8(a, b), _mm_unpacklo_epi8(a, b));
    return _mm512_sllv_epi16(_mm512_set1_epi16(-kE2m1Offset), _mm512_cvtepu8_epi16(pairs));
  }
  VERBATIM_INLINE static Sum add_words(Sum sum, Sum words, const int16_t* pair) {
    return _mm512_dpwssd_epi32(sum, words, broadcast(reinterpret_cast<const int8_t*>(pair)));
  }
  VERBATIM_INLINE static Partial open(Sum sum) { return sum; }
  VERBATIM_INLINE static Sum close(Sum, Partial partial) { return partial; }
  VERBATIM_INLINE static Partial add(Partial sum, Bytes weights, const int8_t* quad) {
    return _mm512_dpbusd_epi32(sum, weights, broadcast(quad));
  }
  VERBATIM_INLINE static Partial add_int8(Partial sum, Bytes weights, const int8_t* quad) {
    return add(sum, weights, quad);
  }
};

}  // namespace verbatim::avx512
