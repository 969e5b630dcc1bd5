#pragma once

#include "kernels/avx2/vector.h"

namespace verbatim::avx2 {

/// The parts of an integer product that AVX2 with and without AVX-VNNI share. The dot products want one
/// unsigned operand, so weights of E2M1 become twice their value plus kE2m1Offset, and drafts of BSFP twice
/// theirs plus kBsfpOffset.
struct DotBase {
  struct Bytes {
    __m256i first;
    __m256i second;
  };
  using Sum = Bytes;
  static constexpr int32_t kE2m1Offset = 12;
  static constexpr int32_t kBsfpOffset = 64;

  VERBATIM_INLINE static Sum start(int32_t value) {
    return {_mm256_set1_epi32(value), _mm256_set1_epi32(value)};
  }
  VERBATIM_INLINE static Bytes load(const uint8_t* codes) {
    const __m256i* const blocks = reinterpret_cast<const __m256i*>(codes);
    return {_mm256_loadu_si256(blocks), _mm256_loadu_si256(blocks + 1)};
  }
  VERBATIM_INLINE static Bytes look_up(__m128i table, const Bytes& nibbles) {
    const __m256i both = _mm256_broadcastsi128_si256(table);
    return {_mm256_shuffle_epi8(both, nibbles.first), _mm256_shuffle_epi8(both, nibbles.second)};
  }
  VERBATIM_INLINE static __m128i e2m1_table() {
    return _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
  }
  VERBATIM_INLINE static __m128i bsfp_table() {
    return _mm_setr_epi8(66, 64, 72, 64, 65, 68, 80, static_cast<char>(128), 62, 64, 56, 64, 63, 60, 48, 0);
  }
  VERBATIM_INLINE static Bytes low_nibbles(const Bytes& codes) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {_mm256_and_si256(codes.first, mask), _mm256_and_si256(codes.second, mask)};
  }
  VERBATIM_INLINE static Bytes high_nibbles(const Bytes& codes) {
    return low_nibbles({_mm256_srli_epi16(codes.first, 4), _mm256_srli_epi16(codes.second, 4)});
  }
  template <int kFrom, int kCount, int kTo>
  VERBATIM_INLINE static Bytes bits(const Bytes& packed) {
    const __m256i mask = _mm256_set1_epi8(static_cast<char>(((1 << kCount) - 1) << kTo));
    const auto chosen = [&](__m256i bytes) {
      if constexpr (kFrom > kTo) bytes = _mm256_srli_epi16(bytes, kFrom - kTo);
      if constexpr (kFrom < kTo) bytes = _mm256_slli_epi16(bytes, kTo - kFrom);
      return _mm256_and_si256(bytes, mask);
    };
    return {chosen(packed.first), chosen(packed.second)};
  }
  VERBATIM_INLINE static Bytes join(const Bytes& a, const Bytes& b) {
    return {_mm256_or_si256(a.first, b.first), _mm256_or_si256(a.second, b.second)};
  }
  VERBATIM_INLINE static Bytes even_words(const Bytes& codes) {
    const __m256i mask = _mm256_set1_epi16(255);
    return {_mm256_and_si256(codes.first, mask), _mm256_and_si256(codes.second, mask)};
  }
  VERBATIM_INLINE static Bytes odd_words(const Bytes& codes) {
    return {_mm256_srli_epi16(codes.first, 8), _mm256_srli_epi16(codes.second, 8)};
  }
  VERBATIM_INLINE static Bytes in_words(const Sum& scales) {
    const auto both = [](__m256i lanes) {
      return _mm256_or_si256(_mm256_and_si256(lanes, _mm256_set1_epi32(0xffff)),
                             _mm256_slli_epi32(lanes, 16));
    };
    return {both(scales.first), both(scales.second)};
  }
  template <int kBias>
  VERBATIM_INLINE static Bytes weights(const Bytes& words) {
    const __m256i bias = _mm256_set1_epi16(kBias);
    return {_mm256_sub_epi16(words.first, bias), _mm256_sub_epi16(words.second, bias)};
  }
  template <int kBias>
  VERBATIM_INLINE static Bytes weights(const Bytes& words, const Bytes& scales) {
    const Bytes unscaled = weights<kBias>(words);
    return {_mm256_mullo_epi16(unscaled.first, scales.first),
            _mm256_mullo_epi16(unscaled.second, scales.second)};
  }
  VERBATIM_INLINE static void store_words(const Bytes& words, int16_t* to) {
    __m256i* const halves = reinterpret_cast<__m256i*>(to);
    _mm256_store_si256(halves, words.first);
    _mm256_store_si256(halves + 1, words.second);
  }
  VERBATIM_INLINE static Sum signed_bytes(const uint8_t* from) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return {_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8))};
  }
  VERBATIM_INLINE static Sum unsigned_bytes(const uint8_t* from) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return {_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))};
  }
  template <int kMask>
  VERBATIM_INLINE static Sum low_bits(const Sum& a) {
    const __m256i mask = _mm256_set1_epi32(kMask);
    return {_mm256_and_si256(a.first, mask), _mm256_and_si256(a.second, mask)};
  }
  template <int kBits>
  VERBATIM_INLINE static Sum shift_right(const Sum& a) {
    return {_mm256_srai_epi32(a.first, kBits), _mm256_srai_epi32(a.second, kBits)};
  }
  VERBATIM_INLINE static Sum add_product(const Sum& sum, const Sum& a, const Sum& b) {
    return {_mm256_add_epi32(sum.first, _mm256_mullo_epi32(a.first, b.first)),
            _mm256_add_epi32(sum.second, _mm256_mullo_epi32(a.second, b.second))};
  }
  VERBATIM_INLINE static Bytes e2m1_low(const Bytes& codes) {
    return look_up(e2m1_table(), low_nibbles(codes));
  }
  VERBATIM_INLINE static Bytes e2m1_high(const Bytes& codes) {
    return look_up(e2m1_table(), high_nibbles(codes));
  }
  VERBATIM_INLINE static Bytes bsfp_low(const Bytes& codes) {
    return look_up(bsfp_table(), low_nibbles(codes));
  }
  VERBATIM_INLINE static Bytes bsfp_high(const Bytes& codes) {
    return look_up(bsfp_table(), high_nibbles(codes));
  }
  VERBATIM_INLINE static __m256i broadcast(const int8_t* quad) {
    int32_t four;
    __builtin_memcpy(&four, quad, sizeof four);
    return _mm256_set1_epi32(four);
  }
  VERBATIM_INLINE static Sum subtract_product(const Sum& sum, const uint8_t* zeros, int32_t value) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(zeros));
    const __m256i all = _mm256_set1_epi32(value);
    return {_mm256_sub_epi32(sum.first, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(bytes), all)),
            _mm256_sub_epi32(sum.second,
                             _mm256_mullo_epi32(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)), all))};
  }
  template <int kBits>
  VERBATIM_INLINE static Sum add_shifted(const Sum& sum, const Sum& shifted) {
    return {_mm256_add_epi32(sum.first, _mm256_slli_epi32(shifted.first, kBits)),
            _mm256_add_epi32(sum.second, _mm256_slli_epi32(shifted.second, kBits))};
  }
  VERBATIM_INLINE static Sum add_shifted(const Sum& sum, const Sum& shifted, const uint8_t* shifts) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(shifts));
    const __m256i first = _mm256_cvtepu8_epi32(bytes);
    const __m256i second = _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8));
    return {_mm256_add_epi32(sum.first, _mm256_sllv_epi32(shifted.first, first)),
            _mm256_add_epi32(sum.second, _mm256_sllv_epi32(shifted.second, second))};
  }
  VERBATIM_INLINE static void store(const Sum& sum, int32_t* out) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), sum.first);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 8), sum.second);
  }
  VERBATIM_INLINE static F32x16 to_float(const Sum& sum) {
    return {_mm256_cvtepi32_ps(sum.first), _mm256_cvtepi32_ps(sum.second)};
  }
};

}  // namespace verbatim::avx2
