#pragma once

#include <immintrin.h>

#include "kernels/generic/code_values.h"
#include "kernels/generic/integer.h"
#include "kernels/generic/tiles.h"

namespace verbatim::amx {

/// The table of a look-up by six bits: the lower four are a code, and the upper two say by how much the
/// weight is shifted before weights are added up (generic/shared_exponents.h).
struct alignas(64) ByteTable {
  int8_t bytes[64];
};
inline constexpr ByteTable byte_table(int kind) {
  static_assert(generic::SharedExponents::kStep == 3);
  ByteTable table{};
  for (int i = 0; i < 64; ++i) {
    const int code = i % 16;
    int8_t& byte = table.bytes[i];
    byte = static_cast<int8_t>(kind == kIntegerInt4 ? code - 8 : code);
    if (kind == kIntegerBsfp) byte = generic::kDoubledBsfp[code];
    if (kind == kIntegerMxfp4) byte = static_cast<int8_t>(generic::kDoubledE2m1[code] * (1 << i / 16));
  }
  return table;
}
template <int kKind>
inline constexpr ByteTable kByteTable = byte_table(kKind);

/// The permutations that repeat the sixteen bytes of one of four tiles, a byte per column, four times each.
inline constexpr ByteTable spreading(int tile) {
  ByteTable table{};
  for (int i = 0; i < 64; ++i) table.bytes[i] = static_cast<int8_t>(tile * 16 + i / 4);
  return table;
}
inline constexpr ByteTable kSpreading[generic::SharedExponents::kTiles] = {spreading(0), spreading(1),
                                                                           spreading(2), spreading(3)};

/// Turns the codes in low nibbles into bytes; high nibbles are ignored.
template <int kKind>
struct LookUp {
  __m512i table = _mm512_load_si512(kByteTable<kKind>.bytes);

  VERBATIM_INLINE __m512i operator()(__m512i nibbles) const {
    return _mm512_permutexvar_epi8(nibbles, table);
  }
};

/// The first level of a group (generic/shared_exponents.h), with all its tiles in one register.
struct FirstLevel {
  __m512i quarters;  ///< [tile][column]: by how much weights are shifted, in bits 4 and 5
  __m128i step;      ///< the exponents that the sums of columns are scaled by
  bool whole;        ///< no exponent is further than kStep below its column's top; else quarters are void

  FirstLevel() = default;
  /// Makes the level of up to four tiles, whose exponents are [tiles][16].
  VERBATIM_INLINE FirstLevel(const uint8_t* exponents, int64_t tiles) {
    const __m512i furthest = _mm512_set1_epi8(generic::SharedExponents::kStep);
    const __m512i all = load(exponents, tiles);
    __m512i top = _mm512_max_epu8(all, _mm512_shuffle_i64x2(all, all, 0x4e));
    top = _mm512_max_epu8(top, _mm512_shuffle_i64x2(top, top, 0xb1));
    const __m512i below = _mm512_sub_epi8(top, all);
    quarters = _mm512_slli_epi16(_mm512_sub_epi8(furthest, below), 4);
    step = _mm_subs_epu8(_mm512_castsi512_si128(top), _mm512_castsi512_si128(furthest));
    whole = _mm512_cmpgt_epu8_mask(below, furthest) == 0;
  }

 private:
  /// Loads the exponents; missing tiles get the exponents of the first.
  VERBATIM_INLINE static __m512i load(const uint8_t* exponents, int64_t tiles) {
    if (tiles == generic::SharedExponents::kTiles) [[likely]]
      return _mm512_loadu_si512(exponents);
    const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(exponents));
    const __mmask64 there = (__mmask64{1} << tiles * kPanelWidth) - 1;
    return _mm512_mask_loadu_epi8(_mm512_broadcast_i32x4(first), there, exponents);
  }
};

/// Turns codes of MXFP4 into shifted bytes, in a group that has a single level.
struct ShiftedLookUp {
  __m512i table = _mm512_load_si512(kByteTable<kIntegerMxfp4>.bytes);
  __m512i quarter;

  VERBATIM_INLINE ShiftedLookUp(const FirstLevel& level, int64_t tile)
      : quarter(_mm512_permutexvar_epi8(_mm512_load_si512(kSpreading[tile].bytes), level.quarters)) {}
  VERBATIM_INLINE __m512i index(__m512i nibbles) const {
    constexpr int kNibbleOrQuarter = 0xea;  // (nibbles & 15) | quarter
    return _mm512_ternarylogic_epi64(nibbles, _mm512_set1_epi8(15), quarter, kNibbleOrQuarter);
  }
  VERBATIM_INLINE __m512i operator()(__m512i nibbles) const {
    return _mm512_permutexvar_epi8(index(nibbles), table);
  }

 protected:
  /// `shifts` has the shift of each byte, or 255 where the result does not matter.
  VERBATIM_INLINE explicit ShiftedLookUp(__m512i shifts) : quarter(_mm512_slli_epi16(shifts, 4)) {}
};

/// Turns codes of MXFP4 into shifted bytes for one of several levels: zeros where a column's tile is not of
/// the level.
struct LevelLookUp : ShiftedLookUp {
  __mmask64 here;

  VERBATIM_INLINE explicit LevelLookUp(generic::Bytes16 shifts) : LevelLookUp(spread(shifts)) {}
  VERBATIM_INLINE __m512i operator()(__m512i nibbles) const {
    return _mm512_maskz_permutexvar_epi8(here, index(nibbles), table);
  }

 private:
  VERBATIM_INLINE explicit LevelLookUp(__m512i spread)
      : ShiftedLookUp(spread),
        here(_mm512_cmple_epu8_mask(spread, _mm512_set1_epi8(generic::SharedExponents::kStep))) {}
  VERBATIM_INLINE static __m512i spread(generic::Bytes16 shifts) {
    return _mm512_permutexvar_epi8(_mm512_load_si512(kSpreading[0].bytes),
                                   _mm512_castsi128_si512(reinterpret_cast<__m128i>(shifts)));
  }
};

/// Turns a tile of codes into 512 bytes in quads, the operand of a tile product, and prefetches codes further
/// on.
template <typename ToBytes>
VERBATIM_INLINE void unpack_bytes(const uint8_t* codes, const ToBytes& to_bytes, uint8_t* out) {
  generic::prefetch_bytes<generic::kCodeBytes>(codes + generic::kCodePrefetchBytes);
  for (int block = 0; block < 4; ++block) {
    const __m512i packed = _mm512_loadu_si512(codes + block * 64);
    _mm512_store_si512(out + block * 128, to_bytes(packed));
    _mm512_store_si512(out + block * 128 + 64, to_bytes(_mm512_srli_epi16(packed, 4)));
  }
}

}  // namespace verbatim::amx
