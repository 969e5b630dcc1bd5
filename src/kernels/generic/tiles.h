#pragma once

#include "kernels/generic/escaped_weights.h"
#include "kernels/kernel_table.h"

namespace verbatim::generic {

// Unpacking of tiles over W, the type of thirty-two 16-bit words of an instruction set. The words of a block
// of codes are lanes (column, parity): a word of the result is the weight of its lane's column at k = 2 pair
// + parity. See kQuadOrder for the order of the nibbles.

inline constexpr int64_t kCodeBytes = 256;         // of 4-bit codes per tile
inline constexpr int64_t kBlockWords = 32;         // a pair of k for 16 columns
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

/// Visits the four pairs of one of a tile's four parts, whose 4-bit codes take 64 bytes: calls pair.template
/// operator()<index>(codes), where the low four bits of each word of `codes` are the codes of the tile's pair
/// with that index.
template <int kPart, typename W, typename Pair>
VERBATIM_INLINE void for_each_pair_of_part(const uint8_t* codes, Pair&& pair) {
  const W words = W::load(codes + kPart * 64);
  pair.template operator()<4 * kPart>(words);
  pair.template operator()<4 * kPart + 1>(words.template nibbles<8>());
  pair.template operator()<4 * kPart + 2>(words.template nibbles<4>());
  pair.template operator()<4 * kPart + 3>(words.template nibbles<12>());
}

/// Whether W looks the nibbles of both bytes of its words up at once, which are those of two pairs: where a
/// look-up takes bytes, that halves their number.
template <typename W>
concept LooksUpTwo = requires(W words) {
  W::look_up16_two(typename W::Table{}, words, &words, &words);
};

/// Visits the four pairs of a part as for_each_pair_of_part() does, with what a table of sixteen words has
/// for their codes.
template <int kPart, typename W, typename Pair>
VERBATIM_INLINE void look_up_pairs_of_part(const typename W::Table& table, const uint8_t* codes,
                                           Pair&& pair) {
  if constexpr (LooksUpTwo<W>) {
    const W words = W::load(codes + kPart * 64);
    W first;
    W second;
    W::look_up16_two(table, words, &first, &second);
    pair.template operator()<4 * kPart>(first);
    pair.template operator()<4 * kPart + 1>(second);
    W::look_up16_two(table, words.template shift_right<4>(), &first, &second);
    pair.template operator()<4 * kPart + 2>(first);
    pair.template operator()<4 * kPart + 3>(second);
  } else {
    for_each_pair_of_part<kPart, W>(
        codes, [&]<int kPair>(W nibbles) __attribute__((always_inline)) {
          pair.template operator()<kPair>(W::look_up16(table, nibbles));
        });
  }
}

/// Visits a tile's sixteen pairs, part after part.
template <typename W, typename Pair>
VERBATIM_INLINE void for_each_pair(const uint8_t* codes, Pair&& pair) {
  for_each_pair_of_part<0, W>(codes, pair);
  for_each_pair_of_part<1, W>(codes, pair);
  for_each_pair_of_part<2, W>(codes, pair);
  for_each_pair_of_part<3, W>(codes, pair);
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

/// Stands for all four parts of a tile, which are numbered from 0.
inline constexpr int kAllParts = -1;
/// Prefetches the cache lines of kBytes bytes, or a part's quarter of them.
template <int64_t kBytes, int kPart = kAllParts>
VERBATIM_INLINE void prefetch_bytes(const uint8_t* from) {
  constexpr int64_t kLines = (kBytes + 63) / 64;
  constexpr int64_t kFirst = kPart == kAllParts ? 0 : kPart * kLines / 4;
  constexpr int64_t kLast = kPart == kAllParts ? kLines : (kPart + 1) * kLines / 4;
  for (int64_t line = kFirst; line < kLast; ++line) __builtin_prefetch(from + line * 64);
}
/// The bytes of a tile's scales in F16.
inline constexpr int64_t kF16ScaleBytes = 2 * kPanelWidth;
/// The distance, in tiles, at which the planes of a tile are prefetched before their use. A type of tiles
/// prefetches the tile with an index, which may lie beyond the last one, or one part of that tile.
inline constexpr int64_t kPrefetchTiles = 6;

/// The place of a tile: its panel, its index in the panel and its index in the matrix.
struct TilePlace {
  int64_t panel;
  int64_t tile;
  int64_t index;  ///< counted over all panels
};

/// Unpacks a tile whose type visits its pairs: Tile::visit_part<part>(Tile::prepare(panels, place), sink)
/// calls sink.template operator()<pair>(words), pair after pair of the part, with the weights of two k in
/// BF16. What Tile::prepare() returns serves all parts of the tile.
template <typename W, typename Tile>
struct VisitedByPairs {
  template <typename Sink>
  VERBATIM_INLINE static void visit(const TilePanels& p, TilePlace at, Sink&& sink) {
    const auto prepared = Tile::prepare(p, at);
    Tile::template visit_part<0>(prepared, sink);
    Tile::template visit_part<1>(prepared, sink);
    Tile::template visit_part<2>(prepared, sink);
    Tile::template visit_part<3>(prepared, sink);
  }
  VERBATIM_INLINE static void unpack(const TilePanels& p, TilePlace at, uint16_t* out) {
    const auto store = [&]<int kPair>(W words) __attribute__((always_inline)) {
      words.store(out + kPair * kBlockWords);
    };
    visit(p, at, store);
  }
};

/// Tiles that are BF16 as they lie.
template <typename W>
struct Bf16Tile : VisitedByPairs<W, Bf16Tile<W>> {
  using Words = W;
  VERBATIM_INLINE static const uint16_t* words(const TilePanels& p, int64_t index) {
    return reinterpret_cast<const uint16_t*>(p.codes) + index * kTileWords;
  }
  template <int kPart = kAllParts>
  VERBATIM_INLINE static void prefetch(const TilePanels& p, int64_t index) {
    prefetch_bytes<kTileWords * 2, kPart>(p.codes + index * kTileWords * 2);
  }
  VERBATIM_INLINE static const uint16_t* prepare(const TilePanels& p, TilePlace at) {
    return words(p, at.index);
  }
  template <int kPart, typename Sink>
  VERBATIM_INLINE static void visit_part(const uint16_t* prepared, Sink&& sink) {
    const uint16_t* const from = prepared + 4 * kPart * kBlockWords;
    sink.template operator()<4 * kPart>(W::load(from));
    sink.template operator()<4 * kPart + 1>(W::load(from + kBlockWords));
    sink.template operator()<4 * kPart + 2>(W::load(from + 2 * kBlockWords));
    sink.template operator()<4 * kPart + 3>(W::load(from + 3 * kBlockWords));
  }
};

/// Unpacks MXFP4 to BF16. It is exact, because the scale is a power of two in a range where every weight is a
/// normal BF16 number (formats/mxfp4.h).
template <typename W>
struct Mxfp4Tile : VisitedByPairs<W, Mxfp4Tile<W>> {
  using Words = W;
  template <int kPart = kAllParts>
  VERBATIM_INLINE static void prefetch(const TilePanels& p, int64_t index) {
    prefetch_bytes<kCodeBytes, kPart>(p.codes + index * kCodeBytes);
    if constexpr (kPart <= 0) __builtin_prefetch(p.scales + index * kPanelWidth);
  }
  struct Prepared {
    const uint8_t* codes;
    typename W::Table table;
    W deficit;
  };
  VERBATIM_INLINE static Prepared prepare(const TilePanels& p, TilePlace at) {
    const W exponents = W::spread_bytes(p.scales + at.index * kPanelWidth);
    return {p.codes + at.index * kCodeBytes, W::table(kE2m1Words),
            W::set(kE2m1Surplus + (127 << 7)) - exponents.template shift_left<7>()};
  }
  template <int kPart, typename Sink>
  VERBATIM_INLINE static void visit_part(const Prepared& prepared, Sink&& sink) {
    look_up_pairs_of_part<kPart, W>(
        prepared.table, prepared.codes, [&]<int kPair>(W value) __attribute__((always_inline)) {
          sink.template operator()<kPair>(subtract_saturating(value, prepared.deficit));
        });
  }
};

/// Unpacks BSFP of BF16 weights: flag and code give the sign and the upper exponent bits, a byte the rest.
template <typename W>
struct BsfpFullTile : VisitedByPairs<W, BsfpFullTile<W>> {
  using Words = W;
  template <int kPart = kAllParts>
  VERBATIM_INLINE static void prefetch(const TilePanels& p, int64_t index) {
    prefetch_bytes<kCodeBytes, kPart>(p.codes + index * kCodeBytes);
    prefetch_bytes<kBsfpRestBytes, kPart>(p.rest + index * kBsfpRestBytes);
  }
  struct Prepared {
    const uint8_t* codes;
    const uint8_t* rest;
    typename W::Table table;
    W flags;
  };
  VERBATIM_INLINE static Prepared prepare(const TilePanels& p, TilePlace at) {
    const uint8_t* const rest = p.rest + at.index * kBsfpRestBytes;
    return {p.codes + at.index * kCodeBytes, rest, W::table(p.table), W::load(rest + 512)};
  }
  template <int kPart, typename Sink>
  VERBATIM_INLINE static void visit_part(const Prepared& prepared, Sink&& sink) {
    if constexpr (LooksUpTwo<W>) {
      const auto& [all_codes, rest, table, flags] = prepared;
      const W codes = W::load(all_codes + kPart * 64);
      W first;
      W second;
      W::look_up_upper_two(table, codes, flags.template shift_right<4 * kPart>(), &first, &second);
      sink.template operator()<4 * kPart>(first | pair_bytes<W, 4 * kPart>(rest));
      sink.template operator()<4 * kPart + 1>(second | pair_bytes<W, 4 * kPart + 1>(rest));
      W::look_up_upper_two(table, codes.template shift_right<4>(),
                           flags.template shift_right<4 * kPart + 2>(), &first, &second);
      sink.template operator()<4 * kPart + 2>(first | pair_bytes<W, 4 * kPart + 2>(rest));
      sink.template operator()<4 * kPart + 3>(second | pair_bytes<W, 4 * kPart + 3>(rest));
    } else {
      for_each_pair_of_part<kPart, W>(
          prepared.codes, [&]<int kPair>(W codes) __attribute__((always_inline)) {
            W flag = prepared.flags;  // brought to bit 4
            if constexpr (kPair < 4) {
              flag = flag.template shift_left<4 - kPair>();
            } else if constexpr (kPair > 4) {
              flag = flag.template shift_right<kPair - 4>();
            }
            const W choice = W::look_up32(prepared.table, select(W::set(0x000f), codes, flag));
            sink.template operator()<kPair>(choice | pair_bytes<W, kPair>(prepared.rest));
          });
    }
  }
};

/// Unpacks BSFP of F16 weights: a nibble holds the flag, the lowest exponent bit and the two upper mantissa
/// bits, a byte the other mantissa bits. The result is an f16 panel, [k][16].
template <typename W>
struct BsfpFullF16Tile {
  using Words = W;
  template <int kPart = kAllParts>
  VERBATIM_INLINE static void prefetch(const TilePanels& p, int64_t index) {
    prefetch_bytes<kCodeBytes, kPart>(p.codes + index * kCodeBytes);
    prefetch_bytes<kBsfpF16RestBytes, kPart>(p.rest + index * kBsfpF16RestBytes);
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
struct Mxbf16FullTile : VisitedByPairs<W, Mxbf16FullTile<W>> {
  using Words = W;
  template <int kPart = kAllParts>
  VERBATIM_INLINE static void prefetch(const TilePanels& p, int64_t index) {
    prefetch_bytes<kCodeBytes, kPart>(p.codes + index * kCodeBytes);
    if constexpr (kPart <= 0) __builtin_prefetch(p.scales + index * kPanelWidth);
    prefetch_bytes<kMxbf16RestBytes, kPart>(p.rest + index * kMxbf16RestBytes);
  }
  struct Prepared {
    const uint8_t* codes;
    const uint8_t* rest;
    typename W::Table table;
    W exponents;
  };
  VERBATIM_INLINE static Prepared prepare(const TilePanels& p, TilePlace at) {
    const W exponents = W::spread_bytes(p.scales + at.index * kPanelWidth);
    return {p.codes + at.index * kCodeBytes, p.rest + at.index * kMxbf16RestBytes, W::table(kMxbf16Starts),
            exponents.template shift_left<7>()};
  }
  template <int kPart, typename Sink>
  VERBATIM_INLINE static void visit_part(const Prepared& prepared, Sink&& sink) {
    look_up_pairs_of_part<kPart, W>(
        prepared.table, prepared.codes, [&]<int kPair>(W start) __attribute__((always_inline)) {
          sink.template operator()<kPair>(start + (prepared.exponents + pair_bytes<W, kPair>(prepared.rest)));
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
struct Int4Tile : VisitedByPairs<W, Int4Tile<W, kWords>> {
  using Words = W;
  template <int kPart = kAllParts>
  VERBATIM_INLINE static void prefetch(const TilePanels& p, int64_t index) {
    prefetch_bytes<kCodeBytes, kPart>(p.codes + index * kCodeBytes);
  }
  struct Prepared {
    const uint8_t* codes;
    typename W::Table table;
  };
  VERBATIM_INLINE static Prepared prepare(const TilePanels& p, TilePlace at) {
    return {p.codes + at.index * kCodeBytes, W::table(kWords)};
  }
  template <int kPart, typename Sink>
  VERBATIM_INLINE static void visit_part(const Prepared& prepared, Sink&& sink) {
    look_up_pairs_of_part<kPart, W>(prepared.table, prepared.codes, sink);
  }
};

/// An UnpackTiles for a type of tiles, which prefetches what it will need unless somebody else does. It is
/// inlined wherever it is called, as the linker would keep one of the copies that files for different
/// processors have of it.
template <typename Tile, bool kEscaped, bool kPrefetched = false>
VERBATIM_INLINE void unpack_tiles(const TilePanels& panels, int64_t panel, int64_t first, int64_t count,
                                  [[maybe_unused]] uint64_t* escaped, uint16_t* out) {
  for (int64_t t = 0; t < count; ++t) {
    const TilePlace at{panel, first + t, panel * panels.tiles + first + t};
    uint16_t* const tile = out + t * kTileWords;
    if constexpr (!kPrefetched) Tile::prefetch(panels, at.index + kPrefetchTiles);
    Tile::unpack(panels, at, tile);
    if constexpr (kEscaped) apply_tile_escaped_weights(panels.escaped, at.index, escaped, tile);
  }
}

/// Visits the two pairs of a quad of codes in BF16, which holds them exactly. The codes are bytes plus 128:
/// bytes 0 and 2 of each pair of words are the first pair, bytes 1 and 3 the second. The order of quads
/// (kQuadOrder) becomes that of pairs.
template <int kQuad, typename W, typename Sink>
VERBATIM_INLINE void visit_byte_quad(W words, Sink&& sink) {
  sink.template operator()<2 * kQuad>(W::template bytes_to_bf16<0>(words));
  sink.template operator()<2 * kQuad + 1>(W::template bytes_to_bf16<1>(words));
}

/// Unpacks int8 codes to BF16.
template <typename W>
struct Int8Tile : VisitedByPairs<W, Int8Tile<W>> {
  using Words = W;
  template <int kPart = kAllParts>
  VERBATIM_INLINE static void prefetch(const TilePanels& p, int64_t index) {
    prefetch_bytes<2 * kCodeBytes, kPart>(p.codes + index * 2 * kCodeBytes);
    if constexpr (kPart <= 0) __builtin_prefetch(p.scales + index * kF16ScaleBytes);
  }
  VERBATIM_INLINE static const uint8_t* prepare(const TilePanels& p, TilePlace at) {
    return p.codes + at.index * 2 * kCodeBytes;
  }
  template <int kPart, typename Sink>
  VERBATIM_INLINE static void visit_part(const uint8_t* prepared, Sink&& sink) {
    const uint8_t* const codes = prepared + kPart * 128;
    const W biased = W::set(0x8080);
    visit_byte_quad<2 * kPart>(W::load(codes) ^ biased, sink);
    visit_byte_quad<2 * kPart + 1>(W::load(codes + 64) ^ biased, sink);
  }
};

/// Joins the halves of codes (formats/q8_0.h) to the bytes of int8 codes, and unpacks these.
template <typename W>
struct Q8_0Tile : VisitedByPairs<W, Q8_0Tile<W>> {
  using Words = W;
  template <int kPart = kAllParts>
  VERBATIM_INLINE static void prefetch(const TilePanels& p, int64_t index) {
    prefetch_bytes<kCodeBytes, kPart>(p.codes + index * kCodeBytes);
    prefetch_bytes<kCodeBytes, kPart>(p.rest + index * kCodeBytes);
    if constexpr (kPart <= 0) __builtin_prefetch(p.scales + index * kF16ScaleBytes);
  }
  struct Prepared {
    const uint8_t* upper;
    const uint8_t* lower;
  };
  VERBATIM_INLINE static Prepared prepare(const TilePanels& p, TilePlace at) {
    return {p.codes + at.index * kCodeBytes, p.rest + at.index * kCodeBytes};
  }
  template <int kPart, typename Sink>
  VERBATIM_INLINE static void visit_part(const Prepared& prepared, Sink&& sink) {
    const W upper = W::load(prepared.upper + kPart * 64);
    const W lower = W::load(prepared.lower + kPart * 64);
    const W mask = W::set(0xf0f0);
    visit_byte_quad<2 * kPart>(select(mask, upper.template shift_left<4>(), lower), sink);
    visit_byte_quad<2 * kPart + 1>(select(mask, upper, lower.template shift_right<4>()), sink);
  }
};

template <typename W>
void fill_unpack(UnpackTiles (&table)[kTileReadings]) {
  table[kTileMxfp4] = unpack_tiles<Mxfp4Tile<W>, false>;
  table[kTileBsfpFull] = unpack_tiles<BsfpFullTile<W>, true>;
  table[kTileBsfpFullF16] = unpack_tiles<BsfpFullF16Tile<W>, true>;
  table[kTileMxbf16Full] = unpack_tiles<Mxbf16FullTile<W>, true>;
  table[kTileInt4] = unpack_tiles<Int4Tile<W, kCodesLessEight>, false>;
  table[kTileInt4Asymmetric] = unpack_tiles<Int4Tile<W, kPlainCodes>, false>;
  table[kTileInt8] = unpack_tiles<Int8Tile<W>, false>;
  table[kTileQ8_0] = unpack_tiles<Q8_0Tile<W>, false>;
}

}  // namespace verbatim::generic
