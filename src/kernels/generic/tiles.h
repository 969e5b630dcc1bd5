#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

// Unpacking of tiles over W, the type of thirty-two 16-bit words of an instruction set. The words of a block
// of codes are lanes (column, parity): a word of the result is the weight of its lane's column at k = 2 pair
// + parity. See kQuadOrder for the order of the nibbles.

inline constexpr int64_t kCodeBytes = 256;  // of 4-bit codes per tile
inline constexpr int64_t kBlockWords = 32;  // a pair of k for 16 columns
inline constexpr int64_t kTileWords = 512;
inline constexpr int64_t kBsfpRestBytes = 576;     // 512 bytes, 64 bytes of flags
inline constexpr int64_t kBsfpF16RestBytes = 768;  // 512 bytes, 256 bytes of nibbles
inline constexpr int64_t kMxbf16RestBytes = 512;
inline constexpr int64_t kTilesPerScale = 4;  // of formats with groups of 128

/// The values of E2M1 in BF16, by code, with a surplus added to the exponent of all but zeros. The difference
/// between the surplus and the scale's exponent is subtracted again with saturation, so that zeros stay
/// zeros.
inline constexpr int kE2m1Surplus = 0x3f3f;
alignas(64) inline constexpr uint16_t kE2m1Words[32] = {
#define VERBATIM_E2M1_WORDS                                                                          \
  0, 0x3f00 + kE2m1Surplus, 0x3f80 + kE2m1Surplus, 0x3fc0 + kE2m1Surplus, 0x4000 + kE2m1Surplus,     \
      0x4040 + kE2m1Surplus, 0x4080 + kE2m1Surplus, 0x40c0 + kE2m1Surplus, 0, 0xbf00 + kE2m1Surplus, \
      0xbf80 + kE2m1Surplus, 0xbfc0 + kE2m1Surplus, 0xc000 + kE2m1Surplus, 0xc040 + kE2m1Surplus,    \
      0xc080 + kE2m1Surplus, 0xc0c0 + kE2m1Surplus
    VERBATIM_E2M1_WORDS, VERBATIM_E2M1_WORDS
#undef VERBATIM_E2M1_WORDS
};

/// Visits a tile's sixteen pairs, block after block: calls pair.template operator()<index>(codes), where the
/// low four bits of each word of `codes` are the pair's codes.
template <typename W, typename Pair>
VERBATIM_INLINE void for_each_pair(const uint8_t* codes, Pair&& pair) {
  const auto block = [&]<int kBlock>() __attribute__((always_inline)) {
    const W words = W::load(codes + kBlock * 64);
    pair.template operator()<4 * kBlock>(words);
    pair.template operator()<4 * kBlock + 1>(words.template nibbles<8>());
    pair.template operator()<4 * kBlock + 2>(words.template nibbles<4>());
    pair.template operator()<4 * kBlock + 3>(words.template nibbles<12>());
  };
  block.template operator()<0>();
  block.template operator()<1>();
  block.template operator()<2>();
  block.template operator()<3>();
}

/// Loads the bytes of a pair, in a plane of 32 bytes per pair, as words. Two pairs share 64 bytes.
template <typename W, int kPair>
VERBATIM_INLINE W pair_bytes(const uint8_t* bytes) {
  const W both = W::load(bytes + kPair / 2 * 64);
  if constexpr (kPair % 2 == 0) {
    return both & W::set(0x00ff);
  } else {
    return both.template shift_right<8>();
  }
}

/// Prefetches the cache lines of kBytes bytes that lie `ahead` bytes further on.
template <int64_t kBytes>
VERBATIM_INLINE void prefetch_ahead(const uint8_t* from, int64_t ahead) {
  for (int64_t line = 0; line < kBytes; line += 64) __builtin_prefetch(from + ahead + line);
}
/// The distance, in tiles, at which the planes of a tile are prefetched before their use.
inline constexpr int64_t kPrefetchTiles = 6;

/// The place of a tile: its panel, its index in the panel and its index in the matrix.
struct TilePlace {
  int64_t panel;
  int64_t tile;
  int64_t index;  ///< counted over all panels
};

/// Unpacks MXFP4 to BF16. It is exact, because the scale is a power of two in a range where every weight is a
/// normal BF16 number (formats/mxfp4.h).
template <typename W>
struct Mxfp4Tile {
  using Words = W;
  VERBATIM_INLINE static void prefetch(const TilePanels& p, TilePlace at) {
    prefetch_ahead<kCodeBytes>(p.codes + at.index * kCodeBytes, kPrefetchTiles * kCodeBytes);
    __builtin_prefetch(p.scales + (at.index + kPrefetchTiles) * kPanelWidth);
  }
  VERBATIM_INLINE static void unpack(const TilePanels& p, TilePlace at, uint16_t* out) {
    const auto table = W::table(kE2m1Words);
    const W deficit = W::set(kE2m1Surplus + (127 << 7)) -
                      W::spread_bytes(p.scales + at.index * kPanelWidth).template shift_left<7>();
    for_each_pair<W>(
        p.codes + at.index * kCodeBytes, [&]<int kPair>(W codes) __attribute__((always_inline)) {
          subtract_saturating(W::look_up16(table, codes), deficit).store(out + kPair * kBlockWords);
        });
  }
};

/// Unpacks BSFP of BF16 weights: flag and code give the sign and the upper exponent bits, a byte the rest.
template <typename W>
struct BsfpFullTile {
  using Words = W;
  VERBATIM_INLINE static void prefetch(const TilePanels& p, TilePlace at) {
    prefetch_ahead<kCodeBytes>(p.codes + at.index * kCodeBytes, kPrefetchTiles * kCodeBytes);
    prefetch_ahead<kBsfpRestBytes>(p.rest + at.index * kBsfpRestBytes, kPrefetchTiles * kBsfpRestBytes);
  }
  VERBATIM_INLINE static void unpack(const TilePanels& p, TilePlace at, uint16_t* out) {
    const uint8_t* const rest = p.rest + at.index * kBsfpRestBytes;
    const auto table = W::table(p.table);
    const W flags = W::load(rest + 512);
    for_each_pair<W>(
        p.codes + at.index * kCodeBytes, [&]<int kPair>(W codes) __attribute__((always_inline)) {
          W flag = flags;  // brought to bit 4
          if constexpr (kPair < 4) {
            flag = flags.template shift_left<4 - kPair>();
          } else if constexpr (kPair > 4) {
            flag = flags.template shift_right<kPair - 4>();
          }
          const W choice = W::look_up32(table, select(W::set(0x000f), codes, flag));
          (choice | pair_bytes<W, kPair>(rest)).store(out + kPair * kBlockWords);
        });
  }
};

/// Unpacks BSFP of F16 weights: a nibble holds the flag, the lowest exponent bit and the two upper mantissa
/// bits, a byte the other mantissa bits. The result is an f16 panel, [k][16].
template <typename W>
struct BsfpFullF16Tile {
  using Words = W;
  VERBATIM_INLINE static void prefetch(const TilePanels& p, TilePlace at) {
    prefetch_ahead<kCodeBytes>(p.codes + at.index * kCodeBytes, kPrefetchTiles * kCodeBytes);
    prefetch_ahead<kBsfpF16RestBytes>(p.rest + at.index * kBsfpF16RestBytes,
                                      kPrefetchTiles * kBsfpF16RestBytes);
  }
  VERBATIM_INLINE static void unpack(const TilePanels& p, TilePlace at, uint16_t* out) {
    const uint8_t* const rest = p.rest + at.index * kBsfpF16RestBytes;
    const auto table = W::table(p.table);
    uint16_t upper[kTileWords];
    for_each_pair<W>(
        rest + 512, [&]<int kPair>(W nibbles)
                        __attribute__((always_inline)) { nibbles.store(upper + kPair * kBlockWords); });
    for_each_pair<W>(
        p.codes + at.index * kCodeBytes, [&]<int kPair>(W codes) __attribute__((always_inline)) {
          const W nibble = W::load(upper + kPair * kBlockWords);
          const W flag = nibble.template shift_left<1>();
          const W choice = W::look_up32(table, select(W::set(0x000f), codes, flag));
          const W middle = (nibble & W::set(7)).template shift_left<8>();
          (choice | middle | pair_bytes<W, kPair>(rest)).store_split(out + kPair * kBlockWords);
        });
  }
};

/// The first BF16 magnitude of each run of an MXBF16 level under the exponent 0, sign on top
/// (formats/mxbf16.h).
alignas(64) inline constexpr uint16_t kMxbf16Starts[32] = {
#define VERBATIM_MXBF16_STARTS(sign)                                                                      \
  static_cast<uint16_t>((sign)-511), static_cast<uint16_t>((sign)-255), static_cast<uint16_t>((sign)-64), \
      static_cast<uint16_t>((sign) + 33), static_cast<uint16_t>((sign) + 96),                             \
      static_cast<uint16_t>((sign) + 161), static_cast<uint16_t>((sign) + 224),                           \
      static_cast<uint16_t>((sign) + 289)
    VERBATIM_MXBF16_STARTS(0), VERBATIM_MXBF16_STARTS(0x8000), VERBATIM_MXBF16_STARTS(0),
    VERBATIM_MXBF16_STARTS(0x8000)
#undef VERBATIM_MXBF16_STARTS
};

template <typename W>
struct Mxbf16FullTile {
  using Words = W;
  VERBATIM_INLINE static void prefetch(const TilePanels& p, TilePlace at) {
    prefetch_ahead<kCodeBytes>(p.codes + at.index * kCodeBytes, kPrefetchTiles * kCodeBytes);
    __builtin_prefetch(p.scales + (at.index + kPrefetchTiles) * kPanelWidth);
    prefetch_ahead<kMxbf16RestBytes>(p.rest + at.index * kMxbf16RestBytes, kPrefetchTiles * kMxbf16RestBytes);
  }
  VERBATIM_INLINE static void unpack(const TilePanels& p, TilePlace at, uint16_t* out) {
    const uint8_t* const rest = p.rest + at.index * kMxbf16RestBytes;
    const auto table = W::table(kMxbf16Starts);
    const W exponents = W::spread_bytes(p.scales + at.index * kPanelWidth).template shift_left<7>();
    for_each_pair<W>(
        p.codes + at.index * kCodeBytes, [&]<int kPair>(W codes) __attribute__((always_inline)) {
          const W place = exponents + pair_bytes<W, kPair>(rest);
          (W::look_up16(table, codes) + place).store(out + kPair * kBlockWords);
        });
  }
};

/// The integers -8 .. 7 and 0 .. 15 in BF16.
alignas(64) inline constexpr uint16_t kCodesLessEight[32] = {
    0xc100, 0xc0e0, 0xc0c0, 0xc0a0, 0xc080, 0xc040, 0xc000, 0xbf80, 0x0000, 0x3f80, 0x4000,
    0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0xc100, 0xc0e0, 0xc0c0, 0xc0a0, 0xc080, 0xc040,
    0xc000, 0xbf80, 0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0};
alignas(64) inline constexpr uint16_t kPlainCodes[32] = {
    0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0x4100, 0x4110, 0x4120,
    0x4130, 0x4140, 0x4150, 0x4160, 0x4170, 0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0,
    0x40c0, 0x40e0, 0x4100, 0x4110, 0x4120, 0x4130, 0x4140, 0x4150, 0x4160, 0x4170};

template <typename W, const uint16_t* kWords>
struct Int4Tile {
  using Words = W;
  VERBATIM_INLINE static void prefetch(const TilePanels& p, TilePlace at) {
    prefetch_ahead<kCodeBytes>(p.codes + at.index * kCodeBytes, kPrefetchTiles * kCodeBytes);
  }
  VERBATIM_INLINE static void unpack(const TilePanels& p, TilePlace at, uint16_t* out) {
    const auto table = W::table(kWords);
    for_each_pair<W>(
        p.codes + at.index * kCodeBytes, [&]<int kPair>(W codes) __attribute__((always_inline)) {
          W::look_up16(table, codes).store(out + kPair * kBlockWords);
        });
  }
};

/// The number of entries of a half tile with this count.
VERBATIM_INLINE uint32_t listed_escaped(uint32_t count) {
  return count == kZeroHalf ? 0 : count == kFullHalf ? 256 : count;
}

/// Overwrites the half tile at `out` with its escaped weights.
VERBATIM_INLINE void apply_escaped_weights(const EscapedWeights& lists, int64_t half, uint64_t* next,
                                           uint16_t* out) {
  const int listed = lists.counts[half];
  if (listed == kZeroHalf) {
    __builtin_memset(out, 0, kTileWords / 2 * sizeof *out);
    return;
  }
  const int count = static_cast<int>(listed_escaped(static_cast<uint32_t>(listed)));
  const uint8_t* const positions = lists.positions + *next;
  const uint16_t* const values = lists.values + *next;
  for (int i = 0; i < count; ++i) out[positions[i]] = values[i];
  *next += count;
}

VERBATIM_INLINE void apply_tile_escaped_weights(const EscapedWeights& lists, int64_t index, uint64_t* next,
                                                uint16_t* out) {
  apply_escaped_weights(lists, index * 2, next, out);
  apply_escaped_weights(lists, index * 2 + 1, next, out + kTileWords / 2);
}

template <typename Tile, bool kEscaped>
void unpack_tiles(const TilePanels& panels, int64_t panel, int64_t first, int64_t count,
                  [[maybe_unused]] uint64_t* escaped, uint16_t* out) {
  for (int64_t t = 0; t < count; ++t) {
    const TilePlace at{panel, first + t, panel * panels.tiles + first + t};
    uint16_t* const tile = out + t * kTileWords;
    Tile::prefetch(panels, at);
    Tile::unpack(panels, at, tile);
    if constexpr (kEscaped) apply_tile_escaped_weights(panels.escaped, at.index, escaped, tile);
  }
}

/// Writes the int8 codes of a quad in BF16, which holds them exactly, pair after pair: bytes 0 and 2 are the
/// first pair, bytes 1 and 3 the second.
template <typename W>
VERBATIM_INLINE void store_int8_quad(W words, uint16_t* out) {
  W::int8_to_bf16(words & W::set(0x00ff)).store(out);
  W::int8_to_bf16(words.template shift_right<8>()).store(out + kBlockWords);
}

/// Unpacks int8 codes to BF16. The order of quads (kQuadOrder) becomes the order of pairs.
template <typename W>
void unpack_int8_tiles(const TilePanels& panels, int64_t panel, int64_t first, int64_t count, uint64_t*,
                       uint16_t* out) {
  const int64_t index = panel * panels.tiles + first;
  for (int64_t quad = 0; quad < count * 8; ++quad) {
    const uint8_t* const codes = panels.codes + (index * 8 + quad) * 64;
    __builtin_prefetch(codes + 2 * kPrefetchTiles * kCodeBytes);
    store_int8_quad(W::load(codes), out + quad * 2 * kBlockWords);
  }
}

/// Joins the halves of codes (formats/q8_0.h) to the bytes of int8 codes, and unpacks these as above.
template <typename W>
void unpack_q8_0_tiles(const TilePanels& panels, int64_t panel, int64_t first, int64_t count, uint64_t*,
                       uint16_t* out) {
  const int64_t index = panel * panels.tiles + first;
  for (int64_t block = 0; block < count * 4; ++block) {
    const int64_t at = index * kCodeBytes + block * 64;
    __builtin_prefetch(panels.codes + at + kPrefetchTiles * kCodeBytes);
    __builtin_prefetch(panels.rest + at + kPrefetchTiles * kCodeBytes);
    const W upper = W::load(panels.codes + at) ^ W::set(0x8888);
    const W lower = W::load(panels.rest + at);
    uint16_t* const to = out + block * 4 * kBlockWords;
    store_int8_quad(select(W::set(0xf0f0), upper.template shift_left<4>(), lower), to);
    store_int8_quad(select(W::set(0xf0f0), upper, lower.template shift_right<4>()), to + 2 * kBlockWords);
  }
}

template <typename W>
void fill_unpack(UnpackTiles (&table)[kTileReadings]) {
  table[kTileMxfp4] = unpack_tiles<Mxfp4Tile<W>, false>;
  table[kTileBsfpFull] = unpack_tiles<BsfpFullTile<W>, true>;
  table[kTileBsfpFullF16] = unpack_tiles<BsfpFullF16Tile<W>, true>;
  table[kTileMxbf16Full] = unpack_tiles<Mxbf16FullTile<W>, true>;
  table[kTileInt4] = unpack_tiles<Int4Tile<W, kCodesLessEight>, false>;
  table[kTileInt4Asymmetric] = unpack_tiles<Int4Tile<W, kPlainCodes>, false>;
  table[kTileInt8] = unpack_int8_tiles<W>;
  table[kTileQ8_0] = unpack_q8_0_tiles<W>;
}

}  // namespace verbatim::generic
