#pragma once

#include "kernels/avx512/vector.h"

namespace verbatim::avx512 {

/// Thirty-two 16-bit words in one register. See scalar/words.h for what each operation means.
struct U16x32 {
  __m512i lanes;

  struct Table {
    __m512i entries;
  };
  VERBATIM_INLINE static Table table(const uint16_t* entries) { return {_mm512_loadu_si512(entries)}; }

  VERBATIM_INLINE static U16x32 set(uint16_t value) {
    return {_mm512_set1_epi16(static_cast<int16_t>(value))};
  }
  VERBATIM_INLINE static U16x32 load(const void* from) { return {_mm512_loadu_si512(from)}; }
  VERBATIM_INLINE static U16x32 spread_bytes(const uint8_t* from) {
    const __m512i wide = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    return {_mm512_or_si512(wide, _mm512_slli_epi32(wide, 16))};
  }
  VERBATIM_INLINE static U16x32 widen_bytes(const uint8_t* from) {
    return {_mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)))};
  }
  VERBATIM_INLINE void store(uint16_t* to) const { _mm512_storeu_si512(to, lanes); }
  VERBATIM_INLINE void store_split(uint16_t* to) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(lanes));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 16),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(lanes, 16)));
  }
  template <int kBits>
  VERBATIM_INLINE U16x32 shift_left() const {
    return {_mm512_slli_epi16(lanes, kBits)};
  }
  template <int kBits>
  VERBATIM_INLINE U16x32 shift_right() const {
    return {_mm512_srli_epi16(lanes, kBits)};
  }
  template <int kFrom>
  VERBATIM_INLINE U16x32 nibbles() const {
    return shift_right<kFrom>();
  }
  VERBATIM_INLINE static U16x32 look_up32(Table table, U16x32 index) {
    return {_mm512_permutexvar_epi16(index.lanes, table.entries)};
  }
  VERBATIM_INLINE static U16x32 look_up16(Table table, U16x32 index) { return look_up32(table, index); }
  /// A byte of each lane of 32 bits as a float, less 128: put below the exponent of 2^23 it is added to that,
  /// and subtracting is exact.
  template <int kByte>
  VERBATIM_INLINE static __m512i byte_to_float(__m512i lanes) {
    const __m512i order =
        _mm512_set_epi32(12 + kByte, 8 + kByte, 4 + kByte, kByte, 12 + kByte, 8 + kByte, 4 + kByte, kByte,
                         12 + kByte, 8 + kByte, 4 + kByte, kByte, 12 + kByte, 8 + kByte, 4 + kByte, kByte);
    const __m512i sum =
        _mm512_mask_shuffle_epi8(_mm512_set1_epi32(0x4b000000), 0x1111111111111111u, lanes, order);
    return _mm512_castps_si512(_mm512_sub_ps(_mm512_castsi512_ps(sum), _mm512_set1_ps(0x1.0001p23f)));
  }
  template <int kByte>
  VERBATIM_INLINE static U16x32 bytes_to_bf16(U16x32 codes) {
    // BF16 is the upper half of a float: odd words are in place, and even ones are brought below them.
    const __m512i down = _mm512_set_epi32(0x0f0e, 0x0b0a, 0x0706, 0x0302, 0x0f0e, 0x0b0a, 0x0706, 0x0302,
                                          0x0f0e, 0x0b0a, 0x0706, 0x0302, 0x0f0e, 0x0b0a, 0x0706, 0x0302);
    return {_mm512_mask_shuffle_epi8(byte_to_float<2 + kByte>(codes.lanes), 0x3333333333333333u,
                                     byte_to_float<kByte>(codes.lanes), down)};
  }
};

VERBATIM_INLINE U16x32 operator+(U16x32 a, U16x32 b) {
  return {_mm512_add_epi16(a.lanes, b.lanes)};
}
VERBATIM_INLINE U16x32 operator^(U16x32 a, U16x32 b) {
  return {_mm512_xor_si512(a.lanes, b.lanes)};
}
VERBATIM_INLINE U16x32 operator-(U16x32 a, U16x32 b) {
  return {_mm512_sub_epi16(a.lanes, b.lanes)};
}
VERBATIM_INLINE U16x32 subtract_saturating(U16x32 a, U16x32 b) {
  return {_mm512_subs_epu16(a.lanes, b.lanes)};
}
VERBATIM_INLINE U16x32 operator&(U16x32 a, U16x32 b) {
  return {_mm512_and_si512(a.lanes, b.lanes)};
}
VERBATIM_INLINE U16x32 operator|(U16x32 a, U16x32 b) {
  return {_mm512_or_si512(a.lanes, b.lanes)};
}
VERBATIM_INLINE U16x32 select(U16x32 mask, U16x32 a, U16x32 b) {
  return {_mm512_ternarylogic_epi64(mask.lanes, a.lanes, b.lanes, 0xca)};
}

}  // namespace verbatim::avx512
