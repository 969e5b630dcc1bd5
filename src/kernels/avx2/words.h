#pragma once

#include "kernels/avx2/vector.h"

namespace verbatim::avx2 {

/// Thirty-two 16-bit words in two registers. See scalar/words.h for what each operation means.
struct U16x32 {
  __m256i low;
  __m256i high;

  /// The lower and the upper bytes of entries 0..15 and 16..31, each twice for the two halves of a register.
  struct Table {
    __m256i lower[2];
    __m256i upper[2];
  };
  VERBATIM_INLINE static Table table(const uint16_t* entries) {
    Table t;
    const __m128i bytes = _mm_set1_epi16(0x00ff);
    for (int half = 0; half < 2; ++half) {
      const __m128i* const from = reinterpret_cast<const __m128i*>(entries + half * 16);
      const __m128i first = _mm_loadu_si128(from);
      const __m128i second = _mm_loadu_si128(from + 1);
      t.lower[half] = _mm256_broadcastsi128_si256(
          _mm_packus_epi16(_mm_and_si128(first, bytes), _mm_and_si128(second, bytes)));
      t.upper[half] =
          _mm256_broadcastsi128_si256(_mm_packus_epi16(_mm_srli_epi16(first, 8), _mm_srli_epi16(second, 8)));
    }
    return t;
  }

  VERBATIM_INLINE static U16x32 set(uint16_t value) {
    const __m256i all = _mm256_set1_epi16(static_cast<int16_t>(value));
    return {all, all};
  }
  VERBATIM_INLINE static U16x32 load(const void* from) {
    const __m256i* const halves = static_cast<const __m256i*>(from);
    return {_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)};
  }
  VERBATIM_INLINE static __m256i both(__m256i wide) {
    return _mm256_or_si256(wide, _mm256_slli_epi32(wide, 16));
  }
  VERBATIM_INLINE static U16x32 spread_bytes(const uint8_t* from) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return {both(_mm256_cvtepu8_epi32(bytes)), both(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)))};
  }
  VERBATIM_INLINE static U16x32 widen_bytes(const uint8_t* from) {
    const __m128i* const halves = reinterpret_cast<const __m128i*>(from);
    return {_mm256_cvtepu8_epi16(_mm_loadu_si128(halves)), _mm256_cvtepu8_epi16(_mm_loadu_si128(halves + 1))};
  }
  VERBATIM_INLINE void store(uint16_t* to) const {
    __m256i* const halves = reinterpret_cast<__m256i*>(to);
    _mm256_storeu_si256(halves, low);
    _mm256_storeu_si256(halves + 1, high);
  }
  /// The even (low) words of both registers in order.
  VERBATIM_INLINE static __m256i low_words(__m256i first, __m256i second) {
    const __m256i mask = _mm256_set1_epi32(0xffff);
    const __m256i packed = _mm256_packus_epi32(_mm256_and_si256(first, mask), _mm256_and_si256(second, mask));
    return _mm256_permute4x64_epi64(packed, 0xd8);
  }
  VERBATIM_INLINE void store_split(uint16_t* to) const {
    __m256i* const halves = reinterpret_cast<__m256i*>(to);
    _mm256_storeu_si256(halves, low_words(low, high));
    _mm256_storeu_si256(halves + 1, low_words(_mm256_srli_epi32(low, 16), _mm256_srli_epi32(high, 16)));
  }
  template <int kBits>
  VERBATIM_INLINE U16x32 shift_left() const {
    return {_mm256_slli_epi16(low, kBits), _mm256_slli_epi16(high, kBits)};
  }
  template <int kBits>
  VERBATIM_INLINE U16x32 shift_right() const {
    return {_mm256_srli_epi16(low, kBits), _mm256_srli_epi16(high, kBits)};
  }
  template <int kFrom>
  VERBATIM_INLINE U16x32 nibbles() const {
    return shift_right<kFrom>();
  }
  /// One half of a table by the low nibbles: a byte shuffle for the lower bytes of the words, whose index
  /// leaves the upper ones zero, and one for the upper.
  VERBATIM_INLINE static __m256i look_up(const Table& table, int half, __m256i nibbles) {
    const __m256i lower = _mm256_or_si256(nibbles, _mm256_set1_epi16(static_cast<int16_t>(0x8000)));
    const __m256i upper = _mm256_or_si256(_mm256_slli_epi16(nibbles, 8), _mm256_set1_epi16(0x0080));
    return _mm256_or_si256(_mm256_shuffle_epi8(table.lower[half], lower),
                           _mm256_shuffle_epi8(table.upper[half], upper));
  }
  VERBATIM_INLINE static __m256i look_up32(const Table& table, __m256i index) {
    const __m256i nibbles = _mm256_and_si256(index, _mm256_set1_epi16(15));
    const __m256i second = _mm256_srai_epi16(_mm256_slli_epi16(index, 11), 15);  // all ones from entry 16 on
    return _mm256_blendv_epi8(look_up(table, 0, nibbles), look_up(table, 1, nibbles), second);
  }
  VERBATIM_INLINE static U16x32 look_up32(const Table& table, const U16x32& index) {
    return {look_up32(table, index.low), look_up32(table, index.high)};
  }
  VERBATIM_INLINE static U16x32 look_up16(const Table& table, const U16x32& index) {
    const __m256i mask = _mm256_set1_epi16(15);
    return {look_up(table, 0, _mm256_and_si256(index.low, mask)),
            look_up(table, 0, _mm256_and_si256(index.high, mask))};
  }
  /// look_up16() of the low nibbles of the lower bytes and of those of the upper bytes: two byte shuffles
  /// have both.
  VERBATIM_INLINE static void look_up16_two(const Table& table, const U16x32& codes, U16x32* first,
                                            U16x32* second) {
    const auto look = [&](__m256i packed, __m256i* one, __m256i* other) {
      const __m256i index = _mm256_and_si256(packed, _mm256_set1_epi8(15));
      const __m256i lower = _mm256_shuffle_epi8(table.lower[0], index);
      const __m256i upper = _mm256_shuffle_epi8(table.upper[0], index);
      const __m256i low_bytes = _mm256_set1_epi16(0x00ff);
      *one = _mm256_or_si256(_mm256_and_si256(lower, low_bytes), _mm256_slli_epi16(upper, 8));
      *other = _mm256_or_si256(_mm256_srli_epi16(lower, 8), _mm256_andnot_si256(low_bytes, upper));
    };
    look(codes.low, &first->low, &second->low);
    look(codes.high, &first->high, &second->high);
  }
  /// The same from a table of thirty-two whose lower bytes are zero: the lowest two bits of `flags` choose
  /// the halves of the table for the lower and for the upper bytes of `codes`.
  VERBATIM_INLINE static void look_up_upper_two(const Table& table, const U16x32& codes, const U16x32& flags,
                                                U16x32* first, U16x32* second) {
    const auto look = [&](__m256i packed, __m256i choices, __m256i* one, __m256i* other) {
      const __m256i index = _mm256_and_si256(packed, _mm256_set1_epi8(15));
      // Times 2^7 + 2^14, the first flag is the topmost bit of the lower byte, the second that of the upper.
      const __m256i both = _mm256_mullo_epi16(_mm256_and_si256(choices, _mm256_set1_epi16(3)),
                                              _mm256_set1_epi16((1 << 7) + (1 << 14)));
      const __m256i upper = _mm256_blendv_epi8(_mm256_shuffle_epi8(table.upper[0], index),
                                               _mm256_shuffle_epi8(table.upper[1], index), both);
      *one = _mm256_slli_epi16(upper, 8);
      *other = _mm256_andnot_si256(_mm256_set1_epi16(0x00ff), upper);
    };
    look(codes.low, flags.low, &first->low, &second->low);
    look(codes.high, flags.high, &first->high, &second->high);
  }
  /// The even and the odd words, which are BF16, as floats.
  VERBATIM_INLINE F32x16 even() const {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(low, 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(high, 16))};
  }
  VERBATIM_INLINE F32x16 odd() const {
    const __m256i mask = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    return {_mm256_castsi256_ps(_mm256_and_si256(low, mask)),
            _mm256_castsi256_ps(_mm256_and_si256(high, mask))};
  }
  /// The odd words in the places of the even ones, and zeros in their own.
  VERBATIM_INLINE U16x32 odd_as_even() const {
    return {_mm256_srli_epi32(low, 16), _mm256_srli_epi32(high, 16)};
  }
  /// A field of each lane of 32 bits, kBits bits from bit kBit on, as a float, less kLess: below the exponent
  /// of 2^(23 - kBit) the field counts ones, and subtracting is exact. With kSigned it is a signed integer.
  template <int kBit, int kBits, int kLess, bool kSigned = false>
  VERBATIM_INLINE F32x16 integers() const {
    static_assert(kBit + kBits <= 16);
    constexpr uint32_t kMask = ((1u << kBits) - 1) << kBit;
    constexpr uint32_t kExponent = static_cast<uint32_t>(127 + 23 - kBit) << 23;
    constexpr uint32_t kSign = kSigned ? 1u << (kBit + kBits - 1) : 0;
    constexpr int kBias = kSigned ? 1 << (kBits - 1) : 0;
    constexpr float kSubtracted = static_cast<float>((1 << (23 - kBit)) + kBias + kLess);
    const auto field = [](__m256i lanes) {
      const __m256i bits = _mm256_and_si256(lanes, _mm256_set1_epi32(static_cast<int>(kMask)));
      const __m256i sum = _mm256_xor_si256(bits, _mm256_set1_epi32(static_cast<int>(kExponent | kSign)));
      return _mm256_sub_ps(_mm256_castsi256_ps(sum), _mm256_set1_ps(kSubtracted));
    };
    return {field(low), field(high)};
  }
  /// A byte of each lane of 32 bits as a float, less 128: put below the exponent of 2^23 it is added to that,
  /// and subtracting is exact.
  template <int kByte>
  VERBATIM_INLINE static __m256i byte_to_float(__m256i lanes) {
    constexpr int kNone = ~0xff;  // bytes of the order that leave zeros
    const __m256i order = _mm256_broadcastsi128_si256(
        _mm_setr_epi32(kNone | kByte, kNone | (4 + kByte), kNone | (8 + kByte), kNone | (12 + kByte)));
    const __m256i byte = _mm256_shuffle_epi8(lanes, order);
    const __m256i sum = _mm256_or_si256(byte, _mm256_set1_epi32(0x4b000000));
    return _mm256_castps_si256(_mm256_sub_ps(_mm256_castsi256_ps(sum), _mm256_set1_ps(0x1.0001p23f)));
  }
  template <int kByte>
  VERBATIM_INLINE static __m256i bytes_to_bf16(__m256i codes) {
    // BF16 is the upper half of a float, whose lower half is zero: the lanes of odd words are in place.
    const __m256i even = byte_to_float<kByte>(codes);
    return _mm256_or_si256(_mm256_srli_epi32(even, 16), byte_to_float<2 + kByte>(codes));
  }
  template <int kByte>
  VERBATIM_INLINE static U16x32 bytes_to_bf16(const U16x32& codes) {
    return {bytes_to_bf16<kByte>(codes.low), bytes_to_bf16<kByte>(codes.high)};
  }
};

VERBATIM_INLINE U16x32 operator+(const U16x32& a, const U16x32& b) {
  return {_mm256_add_epi16(a.low, b.low), _mm256_add_epi16(a.high, b.high)};
}
VERBATIM_INLINE U16x32 operator&(const U16x32& a, const U16x32& b) {
  return {_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
}
VERBATIM_INLINE U16x32 operator|(const U16x32& a, const U16x32& b) {
  return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
}
VERBATIM_INLINE U16x32 operator^(const U16x32& a, const U16x32& b) {
  return {_mm256_xor_si256(a.low, b.low), _mm256_xor_si256(a.high, b.high)};
}
VERBATIM_INLINE U16x32 operator-(const U16x32& a, const U16x32& b) {
  return {_mm256_sub_epi16(a.low, b.low), _mm256_sub_epi16(a.high, b.high)};
}
VERBATIM_INLINE U16x32 subtract_saturating(const U16x32& a, const U16x32& b) {
  return {_mm256_subs_epu16(a.low, b.low), _mm256_subs_epu16(a.high, b.high)};
}
VERBATIM_INLINE U16x32 select(const U16x32& mask, const U16x32& a, const U16x32& b) {
  const auto choose = [](__m256i m, __m256i x, __m256i y) {
    return _mm256_or_si256(_mm256_and_si256(m, x), _mm256_andnot_si256(m, y));
  };
  return {choose(mask.low, a.low, b.low), choose(mask.high, a.high, b.high)};
}

}  // namespace verbatim::avx2
