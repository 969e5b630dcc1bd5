#pragma once

#include "kernels/avx512/words.h"

namespace verbatim::amx {

/// The thirty-two words of AVX-512, except that nibbles are extracted by vpmultishiftqb, which runs on the
/// second port for vectors: shifts need the first port, which look-ups and saturating subtractions keep busy.
struct Words : avx512::U16x32 {
  Words() = default;
  VERBATIM_INLINE Words(avx512::U16x32 words) : avx512::U16x32(words) {}

  /// Each byte of a result is the eight bits from one of 64 places of its quadword on.
  template <int kFrom>
  VERBATIM_INLINE Words nibbles() const {
    constexpr int64_t kPlaces =
        kFrom | int64_t{kFrom + 16} << 16 | int64_t{kFrom + 32} << 32 | int64_t{kFrom + 48} << 48;
    return avx512::U16x32{_mm512_multishift_epi64_epi8(_mm512_set1_epi64(kPlaces), lanes)};
  }
};

}  // namespace verbatim::amx
