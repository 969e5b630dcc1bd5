#pragma once

#include <immintrin.h>

#include "kernels/generic/code_values.h"
#include "kernels/generic/integer.h"
#include "kernels/generic/tiles.h"

namespace verbatim::amx {

/// The bytes that a look-up by six bits finds: by the four of a code, and where weights are shifted before
/// they are added up (generic/shared_exponents.h), by how far in the two above.
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

/// Every byte four times.
inline constexpr ByteTable spreading() {
  ByteTable table{};
  for (int i = 0; i < 64; ++i) table.bytes[i] = static_cast<int8_t>(i / 4);
  return table;
}
inline constexpr ByteTable kSpreading = spreading();

/// Makes bytes of the codes in the low nibbles; what is in the high ones does not matter.
template <int kKind>
struct LookUp {
  __m512i table = _mm512_load_si512(kByteTable<kKind>.bytes);

  VERBATIM_INLINE explicit LookUp(generic::Bytes16) {}
  VERBATIM_INLINE __m512i operator()(__m512i nibbles) const {
    return _mm512_permutexvar_epi8(nibbles, table);
  }
};

/// Those of a tile under shifts, zeros where it is not in the level.
template <>
struct LookUp<kIntegerMxfp4> {
  __m512i table = _mm512_load_si512(kByteTable<kIntegerMxfp4>.bytes);
  __m512i quarter;
  __mmask64 here;

  VERBATIM_INLINE explicit LookUp(generic::Bytes16 shifts) {
    const __m512i spread = _mm512_permutexvar_epi8(_mm512_load_si512(kSpreading.bytes),
                                                   _mm512_castsi128_si512(reinterpret_cast<__m128i>(shifts)));
    here = _mm512_cmple_epu8_mask(spread, _mm512_set1_epi8(generic::SharedExponents::kStep));
    quarter = _mm512_slli_epi16(spread, 4);
  }
  VERBATIM_INLINE __m512i operator()(__m512i nibbles) const {
    constexpr int kNibbleOrQuarter = 0xea;  // (nibbles & 15) | quarter
    const __m512i index = _mm512_ternarylogic_epi64(nibbles, _mm512_set1_epi8(15), quarter, kNibbleOrQuarter);
    return _mm512_maskz_permutexvar_epi8(here, index, table);
  }
};

/// A tile of codes to 512 bytes in quads, as a tile product wants them, and fetches codes further on.
/// `shifts`: of MXFP4.
template <int kKind>
VERBATIM_INLINE void unpack_bytes(const uint8_t* codes, generic::Bytes16 shifts, uint8_t* out) {
  generic::prefetch_ahead<generic::kCodeBytes>(codes, 2 * generic::kCodePrefetchBytes);
  const LookUp<kKind> look_up(shifts);
  for (int block = 0; block < 4; ++block) {
    const __m512i packed = _mm512_loadu_si512(codes + block * 64);
    _mm512_store_si512(out + block * 128, look_up(packed));
    _mm512_store_si512(out + block * 128 + 64, look_up(_mm512_srli_epi16(packed, 4)));
  }
}

}  // namespace verbatim::amx
