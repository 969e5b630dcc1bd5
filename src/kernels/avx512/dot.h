#pragma once

#include "kernels/avx512/vector.h"

namespace verbatim::avx512 {

/// Looks sixteen bytes per 128-bit lane up by the low nibbles of `codes`.
VERBATIM_INLINE __m512i look_up(__m128i table, __m512i codes) {
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), _mm512_and_si512(codes, _mm512_set1_epi8(15)));
}

/// The parts of an integer product that AVX-512 with and without VNNI share. The dot products want one
/// unsigned operand, so weights of E2M1 become twice their value plus kE2m1Offset, and drafts of BSFP twice
/// theirs plus kBsfpOffset.
struct DotBase {
  using Bytes = __m512i;
  using Sum = __m512i;
  static constexpr int32_t kE2m1Offset = 12;
  static constexpr int32_t kBsfpOffset = 64;

  VERBATIM_INLINE static Sum start(int32_t value) { return _mm512_set1_epi32(value); }
  VERBATIM_INLINE static Bytes load(const uint8_t* codes) { return _mm512_loadu_si512(codes); }
  VERBATIM_INLINE static __m128i e2m1_table() {
    return _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
  }
  VERBATIM_INLINE static Bytes e2m1_low(Bytes codes) { return look_up(e2m1_table(), codes); }
  VERBATIM_INLINE static Bytes e2m1_high(Bytes codes) {
    return look_up(e2m1_table(), _mm512_srli_epi16(codes, 4));
  }
  VERBATIM_INLINE static __m128i bsfp_table() {
    return _mm_setr_epi8(66, 64, 72, 64, 65, 68, 80, static_cast<char>(128), 62, 64, 56, 64, 63, 60, 48, 0);
  }
  VERBATIM_INLINE static Bytes bsfp_low(Bytes codes) { return look_up(bsfp_table(), codes); }
  VERBATIM_INLINE static Bytes bsfp_high(Bytes codes) {
    return look_up(bsfp_table(), _mm512_srli_epi16(codes, 4));
  }
  VERBATIM_INLINE static Bytes low_nibbles(Bytes codes) {
    return _mm512_and_si512(codes, _mm512_set1_epi8(15));
  }
  VERBATIM_INLINE static Bytes high_nibbles(Bytes codes) { return low_nibbles(_mm512_srli_epi16(codes, 4)); }
  template <int kFrom, int kCount, int kTo>
  VERBATIM_INLINE static Bytes bits(Bytes packed) {
    if constexpr (kFrom > kTo) packed = _mm512_srli_epi16(packed, kFrom - kTo);
    if constexpr (kFrom < kTo) packed = _mm512_slli_epi16(packed, kTo - kFrom);
    return _mm512_and_si512(packed, _mm512_set1_epi8(static_cast<char>(((1 << kCount) - 1) << kTo)));
  }
  VERBATIM_INLINE static Bytes join(Bytes a, Bytes b) { return _mm512_or_si512(a, b); }
  VERBATIM_INLINE static Bytes even_words(Bytes codes) {
    return _mm512_and_si512(codes, _mm512_set1_epi16(255));
  }
  VERBATIM_INLINE static Bytes odd_words(Bytes codes) { return _mm512_srli_epi16(codes, 8); }
  VERBATIM_INLINE static Bytes in_words(Sum scales) {
    return _mm512_or_si512(_mm512_and_si512(scales, _mm512_set1_epi32(0xffff)),
                           _mm512_slli_epi32(scales, 16));
  }
  template <int kBias>
  VERBATIM_INLINE static Bytes weights(Bytes words) {
    return _mm512_sub_epi16(words, _mm512_set1_epi16(kBias));
  }
  template <int kBias>
  VERBATIM_INLINE static Bytes weights(Bytes words, Bytes scales) {
    return _mm512_mullo_epi16(weights<kBias>(words), scales);
  }
  VERBATIM_INLINE static void store_words(Bytes words, int16_t* to) { _mm512_store_si512(to, words); }
  VERBATIM_INLINE static Sum signed_bytes(const uint8_t* from) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  VERBATIM_INLINE static Sum unsigned_bytes(const uint8_t* from) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  template <int kMask>
  VERBATIM_INLINE static Sum low_bits(Sum a) {
    return _mm512_and_si512(a, _mm512_set1_epi32(kMask));
  }
  template <int kBits>
  VERBATIM_INLINE static Sum shift_right(Sum a) {
    return _mm512_srai_epi32(a, kBits);
  }
  VERBATIM_INLINE static Sum add_product(Sum sum, Sum a, Sum b) {
    return _mm512_add_epi32(sum, _mm512_mullo_epi32(a, b));
  }
  VERBATIM_INLINE static __m512i broadcast(const int8_t* quad) {
    int32_t four;
    __builtin_memcpy(&four, quad, sizeof four);
    return _mm512_set1_epi32(four);
  }
  VERBATIM_INLINE static Sum subtract_product(Sum sum, const uint8_t* zeros, int32_t value) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(zeros));
    return _mm512_sub_epi32(sum, _mm512_mullo_epi32(_mm512_cvtepu8_epi32(bytes), _mm512_set1_epi32(value)));
  }
  template <int kBits>
  VERBATIM_INLINE static Sum add_shifted(Sum sum, Sum shifted) {
    return _mm512_add_epi32(sum, _mm512_slli_epi32(shifted, kBits));
  }
  VERBATIM_INLINE static Sum add_shifted(Sum sum, Sum shifted, const uint8_t* shifts) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(shifts));
    return _mm512_add_epi32(sum, _mm512_sllv_epi32(shifted, _mm512_cvtepu8_epi32(bytes)));
  }
  VERBATIM_INLINE static void store(Sum sum, int32_t* out) { _mm512_storeu_si512(out, sum); }
  VERBATIM_INLINE static F32x16 to_float(Sum sum) { return {_mm512_cvtepi32_ps(sum)}; }
};

}  // namespace verbatim::avx512
