#pragma once

#include <immintrin.h>

#include "kernels/generic/tiles.h"

namespace verbatim::amx {

// The lossless tiles of generic/tiles.h with the byte permutations that every machine with tiles has (AVX-512
// VBMI and VBMI2): the same words from fewer operations. Vectors of 512 bits have two ports for arithmetic;
// byte permutations take one of them, where permutations of words take both, and so make looking bytes up
// half the price. Two pairs of a tile are worked on at a time: the word (upper byte of the first pair, lower
// byte of the second) is what vpternlog and vpshldw join with a word of two pairs' other bytes in one
// operation each.

/// Calls two.template operator()<index>() for every two pairs of a tile, with the index of the first of the
/// two.
template <typename Two>
VERBATIM_INLINE void for_each_two_pairs(Two&& two) {
  two.template operator()<0>();
  two.template operator()<2>();
  two.template operator()<4>();
  two.template operator()<6>();
  two.template operator()<8>();
  two.template operator()<10>();
  two.template operator()<12>();
  two.template operator()<14>();
}

/// (mask ? a : b) bit by bit; overwrites a and not the mask, which spares a copy.
VERBATIM_INLINE __m512i choose(__m512i mask, __m512i a, __m512i b) {
  return _mm512_ternarylogic_epi64(a, b, mask, 0xe4);
}

/// Stores the words of two pairs: (upper byte of `upper`, lower byte of `lower`), and (lower byte of `upper`,
/// upper byte of `lower`).
VERBATIM_INLINE __m512i join_first(__m512i upper, __m512i lower) {
  return choose(_mm512_set1_epi16(-256), upper, lower);
}
VERBATIM_INLINE __m512i join_second(__m512i upper, __m512i lower) {
  return _mm512_shldi_epi16(upper, lower, 8);
}

/// Operand of vpmultishiftqb: every word's upper byte from the word's bits `upper` on, its lower byte from
/// the bits `lower` on, either of which may be negative where the bits below do not matter.
VERBATIM_INLINE __m512i byte_shifts(int upper, int lower) {
  uint64_t shifts = 0;
  for (int word = 0; word < 4; ++word) {
    const auto at = [&](int bit) { return static_cast<uint64_t>((16 * word + bit) & 63); };
    shifts |= (at(upper) << 8 | at(lower)) << (16 * word);
  }
  return _mm512_set1_epi64(static_cast<int64_t>(shifts));
}

struct BsfpFullTile {
  VERBATIM_INLINE static void prefetch(const TilePanels& p, int64_t index) {
    generic::prefetch_bytes<generic::kCodeBytes>(p.codes + index * generic::kCodeBytes);
    generic::prefetch_bytes<generic::kBsfpRestBytes>(p.rest + index * generic::kBsfpRestBytes);
  }
  /// The table's words have nothing in their lower bytes: an even exponent, and no mantissa.
  VERBATIM_INLINE static void unpack(const TilePanels& p, generic::TilePlace at, uint16_t* out) {
    const uint8_t* const codes = p.codes + at.index * generic::kCodeBytes;
    const uint8_t* const rest = p.rest + at.index * generic::kBsfpRestBytes;
    const __m256i uppers = _mm512_cvtepi16_epi8(_mm512_srli_epi16(_mm512_loadu_si512(p.table), 8));
    const __m512i table = _mm512_inserti64x4(_mm512_castsi256_si512(uppers), uppers, 1);
    const __m512i flags = _mm512_loadu_si512(rest + 512);
    for_each_two_pairs([&]<int kPair>() __attribute__((always_inline)) {
      constexpr int kNibble = kPair % 4 * 2;
      const __m512i words = _mm512_loadu_si512(codes + kPair / 4 * 64);
      const __m512i code = _mm512_multishift_epi64_epi8(byte_shifts(kNibble, kNibble + 8), words);
      const __m512i flag = _mm512_multishift_epi64_epi8(byte_shifts(kPair - 4, kPair - 3), flags);
      const __m512i choice = choose(_mm512_set1_epi8(15), code, flag);
      const __m512i upper = _mm512_permutexvar_epi8(choice, table);
      const __m512i lower = _mm512_loadu_si512(rest + kPair / 2 * 64);
      _mm512_store_si512(out + (kPair + 1) * generic::kBlockWords, join_second(upper, lower));
      _mm512_store_si512(out + kPair * generic::kBlockWords, join_first(upper, lower));
    });
  }
};

/// The words of generic::kMxbf16Starts, and again with the lowest bit of the exponent.
alignas(64) inline constexpr uint16_t kMxbf16Starts[32] = {
#define VERBATIM_MXBF16_STARTS(sum)                                                                    \
  static_cast<uint16_t>((sum)-511), static_cast<uint16_t>((sum)-255), static_cast<uint16_t>((sum)-64), \
      static_cast<uint16_t>((sum) + 33), static_cast<uint16_t>((sum) + 96),                            \
      static_cast<uint16_t>((sum) + 161), static_cast<uint16_t>((sum) + 224),                          \
      static_cast<uint16_t>((sum) + 289)
    VERBATIM_MXBF16_STARTS(0), VERBATIM_MXBF16_STARTS(0x8000), VERBATIM_MXBF16_STARTS(0x80),
    VERBATIM_MXBF16_STARTS(0x8080)
#undef VERBATIM_MXBF16_STARTS
};

struct Mxbf16FullTile {
  VERBATIM_INLINE static void prefetch(const TilePanels& p, int64_t index) {
    generic::prefetch_bytes<generic::kCodeBytes>(p.codes + index * generic::kCodeBytes);
    __builtin_prefetch(p.scales + index * kPanelWidth);
    generic::prefetch_bytes<generic::kMxbf16RestBytes>(p.rest + index * generic::kMxbf16RestBytes);
  }
  /// The exponent's upper bits stand over the place within the run, its lowest one chooses the half of the
  /// table.
  VERBATIM_INLINE static void unpack(const TilePanels& p, generic::TilePlace at, uint16_t* out) {
    const uint8_t* const codes = p.codes + at.index * generic::kCodeBytes;
    const uint8_t* const rest = p.rest + at.index * generic::kMxbf16RestBytes;
    const __m512i table = _mm512_load_si512(kMxbf16Starts);
    const __m512i exponents = _mm512_mullo_epi32(
        _mm512_cvtepu8_epi32(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(p.scales + at.index * kPanelWidth))),
        _mm512_set1_epi32(0x01010101));
    const __m512i lowest = _mm512_slli_epi16(exponents, 4);
    const __m512i upper = _mm512_and_si512(_mm512_srli_epi16(exponents, 1), _mm512_set1_epi8(127));
    for_each_two_pairs([&]<int kPair>() __attribute__((always_inline)) {
      __m512i code = _mm512_loadu_si512(codes + kPair / 4 * 64);
      if constexpr (kPair % 4 != 0) code = _mm512_srli_epi16(code, 4);
      const __m512i choice = choose(_mm512_set1_epi8(15), code, lowest);
      const __m512i first = _mm512_permutexvar_epi16(choice, table);
      const __m512i second = _mm512_permutexvar_epi16(_mm512_srli_epi16(choice, 8), table);
      const __m512i lower = _mm512_loadu_si512(rest + kPair / 2 * 64);
      _mm512_store_si512(out + kPair * generic::kBlockWords,
                         _mm512_add_epi16(first, join_first(upper, lower)));
      _mm512_store_si512(out + (kPair + 1) * generic::kBlockWords,
                         _mm512_add_epi16(second, join_second(upper, lower)));
    });
  }
};

}  // namespace verbatim::amx
