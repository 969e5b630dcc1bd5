#pragma once

#include "kernels/amx/full_tiles.h"
#include "kernels/amx/words.h"
#include "kernels/generic/scaled.h"
#include "kernels/generic/tiles.h"

namespace verbatim::amx {

/// The bytes of the magnitudes 1 to 128 in BF16, by the lower seven bits of the magnitude. The first place is
/// that of 128, so zero must be recognized separately.
struct Int8Bytes {
  alignas(64) uint8_t upper[128];
  alignas(64) uint8_t lower[128];
};
inline constexpr Int8Bytes int8_bytes() {
  Int8Bytes bytes{};
  for (int i = 0; i < 128; ++i) {
    const uint16_t bits = to_bfloat16(i == 0 ? 128.0f : static_cast<float>(i)).bits;
    bytes.upper[i] = static_cast<uint8_t>(bits >> 8);
    bytes.lower[i] = static_cast<uint8_t>(bits & 255);
  }
  return bytes;
}
inline constexpr Int8Bytes kInt8Bf16 = int8_bytes();

/// Unpacks the codes of a reading to BF16.
template <TileReading kReading>
struct Codes {
  static constexpr bool kZeros = kReading == kTileInt4Asymmetric;
  static constexpr bool kRest = kReading == kTileQ8_0;
  static constexpr int64_t kGroupTiles = kReading == kTileInt8 || kRest ? 1 : generic::kTilesPerScale;
  static constexpr int64_t kBytes = (kReading == kTileInt8 ? 2 : 1) * generic::kCodeBytes;

  /// The place of a tile's codes, and that of their lower halves where these lie apart.
  struct Place {
    const uint8_t* codes;
    const uint8_t* rest;

    VERBATIM_INLINE void next() {
      codes += kBytes;
      if constexpr (kRest) rest += kBytes;
    }
  };
  VERBATIM_INLINE static Place place(const TilePanels& panels, int64_t index) {
    return {panels.codes + index * kBytes, kRest ? panels.rest + index * kBytes : nullptr};
  }

  /// Unpacks a tile, and prefetches one further on.
  VERBATIM_INLINE static void unpack(const Place& at, uint16_t* out) {
    const uint8_t* const codes = at.codes;
    generic::prefetch_bytes<kBytes>(codes + kPrefetchBytes);
    if constexpr (kReading == kTileInt8) {
      for (int quad = 0; quad < 8; ++quad) {
        unpack_quad(_mm512_loadu_si512(codes + quad * 64), out + quad * 2 * generic::kBlockWords);
      }
    } else if constexpr (kRest) {
      generic::prefetch_bytes<kBytes>(at.rest + kPrefetchBytes);
      const __m512i upper_half = _mm512_set1_epi8(static_cast<char>(0xf0));
      for (int block = 0; block < 4; ++block) {
        const __m512i upper = _mm512_xor_si512(_mm512_loadu_si512(codes + block * 64),
                                               _mm512_set1_epi8(static_cast<char>(0x88)));
        const __m512i lower = _mm512_loadu_si512(at.rest + block * 64);
        uint16_t* const to = out + block * 4 * generic::kBlockWords;
        unpack_quad(choose(upper_half, _mm512_slli_epi16(upper, 4), lower), to);
        unpack_quad(choose(upper_half, upper, _mm512_srli_epi16(lower, 4)), to + 2 * generic::kBlockWords);
      }
    } else {
      const auto table = Words::table(kZeros ? generic::kPlainCodes : generic::kCodesLessEight);
      generic::for_each_pair<Words>(
          codes, [&]<int kPair>(Words pair) __attribute__((always_inline)) {
            Words::look_up16(table, pair).store(out + kPair * generic::kBlockWords);
          });
    }
  }

 private:
  static constexpr int64_t kPrefetchBytes = 2048;

  /// Bytes 0 and 2 of each quad are its first pair, bytes 1 and 3 its second: the low and the high bytes of
  /// words. Permutations of bytes are looked up with, for the conversion of integers to floats takes several
  /// times as many operations.
  VERBATIM_INLINE static void unpack_quad(__m512i codes, uint16_t* out) {
    const __m512i magnitudes = _mm512_abs_epi8(codes);
    const __m512i swapped = _mm512_shldi_epi16(magnitudes, magnitudes, 8);
    const __m512i lower = _mm512_permutex2var_epi8(_mm512_load_si512(kInt8Bf16.lower), swapped,
                                                   _mm512_load_si512(kInt8Bf16.lower + 64));
    const __m512i unsigned_upper = _mm512_maskz_permutex2var_epi8(
        _mm512_test_epi8_mask(codes, codes), _mm512_load_si512(kInt8Bf16.upper), magnitudes,
        _mm512_load_si512(kInt8Bf16.upper + 64));
    const __m512i upper = choose(_mm512_set1_epi8(127), unsigned_upper, codes);  // the sign is the code's
    _mm512_store_si512(out, join_second(upper, lower));
    _mm512_store_si512(out + generic::kBlockWords, join_first(upper, lower));
  }
};

}  // namespace verbatim::amx
