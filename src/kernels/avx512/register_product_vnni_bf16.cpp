#include "kernels/avx512/register_product.h"

#include <type_traits>
#include <utility>

#include "kernels/avx512/panel_sums.h"
#include "kernels/generic/tiles.h"

namespace verbatim::avx512 {

namespace {

/// Products of all rows with panels of a reading.
template <typename Tile, typename Scaling, bool kEscaped>
class Product {
 public:
  explicit Product(const ScaledProduct& p) : p_(p), tiles_(p.tiles.weights.tiles) {}

  void run() const {
    const int64_t rows = p_.tiles.rows;
    if (rows == 0) return;
    if constexpr (kEscaped) {
      run_escaped();
    } else {
      run_whole();
    }
  }

 private:
  /// The tiles of a panel that are unpacked to memory at a time: 8 KB, a multiple of every group's.
  static constexpr int64_t kPiece = kManyRowsPiece;
  /// The number of panels that many rows are multiplied with side by side.
  static constexpr int64_t kManyPanels = 2;
  /// The most rows whose pairs of activations stay in registers while two panels meet them.
  static constexpr int kFewRows = 8;
  /// The number of rows that meet a piece before the next one is unpacked.
  static constexpr int64_t kTogether = 256;
  static_assert(kTogether * kManyPanels * kPanelWidth <= kManyRowsScratch);

  /// Chooses by the number of rows where some weights are escaped. The lists of these are more places in
  /// memory, and what unpacks tiles takes registers: a second panel costs more than it gains.
  void run_escaped() const {
    static_assert(few_register_rows(kTileBsfpFull) == 2 && few_register_rows(kTileMxbf16Full) == 2);
    static_assert(kRowTile == 16);
    const int64_t rows = p_.tiles.rows;
    if (rows == 1) return few_rows<1, (kFewEscaped ? 2 : 1)>();
    if (rows == 2) return few_rows<2, 1>();
    if (rows <= 4) return few_tiled_rows<4, 1>();
    if (rows <= 6) return few_tiled_rows<6, 1>();
    if (rows <= 8) return few_tiled_rows<8, 1>();
    if (rows <= 12) return few_tiled_rows<12, 1>();
    if (rows <= kRowTile) return few_tiled_rows<16, 1>();
    many_rows();
  }

  /// Chooses by the number of rows where all weights are whole.
  void run_whole() const {
    static_assert(few_register_rows(kTileBf16) == 8);
    static_assert(kRowTile == 16);
    const int64_t rows = p_.tiles.rows;
    // Where products are scaled, each row takes two registers for each panel.
    constexpr int kPanels = Scaling::kGroupTiles == 0 ? 2 : 1;
    if (rows == 1) return few_rows<1, 4>();
    if (rows == 2) return few_rows<2, 4>();
    if (rows <= 4) return few_rows<4, 2>();
    if (rows <= 6) return few_rows<6, kPanels>();
    if (rows <= 8) return few_rows<8, kPanels>();
    if constexpr (kInPlace) {
      if (rows <= 10) return few_tiled_rows<10, 2>();
      if (rows <= 12) return few_tiled_rows<12, 2>();
      if (rows <= 14) return few_tiled_rows<14, 2>();
    } else {
      if (rows <= 12) return few_tiled_rows<12, 1>();
      if (rows <= kRowTile) return few_tiled_rows<16, 1>();
    }
    many_rows();
  }

  float* result(int64_t row, int64_t panel) const {
    return p_.tiles.c + row * p_.tiles.c_stride + (panel - p_.tiles.first_panel) * kPanelWidth;
  }
  uint64_t first_escaped(int64_t panel) const {
    return kEscaped ? p_.tiles.weights.escaped.starts[panel] : 0;
  }

  /// What takes the pairs of a tile and multiplies them with a block of rows.
  template <typename Rows, typename Sums>
  VERBATIM_INLINE static auto sink(int64_t tile, const Rows& rows, Sums& sums) {
    return [ tile, &rows, &sums ]<int kPair>(Words words) __attribute__((always_inline)) {
      sums.add(words, rows, tile, 2 * kPair);
    };
  }

  template <int kPart, typename Rows, typename Sums>
  VERBATIM_INLINE void add_part(generic::TilePlace at, const Rows& rows, Sums& sums) const {
    Tile::template visit_part<kPart>(Tile::prepare(p_.tiles.weights, at), sink(at.tile, rows, sums));
  }

  /// Whether the words of tiles are the matrix itself.
  static constexpr bool kInPlace = std::is_same_v<Tile, generic::Bf16Tile<Words>>;
  /// Whether the weights of most tiles are all where their codes stand.
  static constexpr bool kFewEscaped = std::is_same_v<Tile, generic::BsfpFullTile<Words>>;

  /// Adds the products with a pair of inputs of kPanels panels, not scaled. A pair of activations of many
  /// rows is used for all panels before the next one, or these pairs would take the registers of the sums.
  template <int kPanels, int kRows, typename Rows>
  VERBATIM_INLINE static void add_to_all(PanelSums<Scaling, kRows> (&sums)[kPanels],
                                         const Words (&words)[kPanels], const Rows& rows, int64_t tile,
                                         int64_t input) {
    if constexpr (kRows <= kFewRows) {
      for (int j = 0; j < kPanels; ++j) sums[j].add(words[j], rows, tile, input);
      return;
    }
#pragma GCC unroll 16  // or the sums of many rows leave the registers
    for (int r = 0; r < kRows; ++r) {
      const __m512i pair = PanelSums<Scaling, kRows>::pair_of(rows, r, tile, input);
      for (int j = 0; j < kPanels; ++j) {
        __m512& sum = sums[j].open(r);
        sum = _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(words[j].lanes),
                               reinterpret_cast<__m512bh>(pair));
      }
    }
  }

  /// Adds the products with some pairs of inputs of a tile, from `first` on, to the sums of kPanels panels.
  template <int kPairs, int kPanels, int kRows, typename Rows>
  VERBATIM_INLINE static void add_pairs(PanelSums<Scaling, kRows> (&sums)[kPanels],
                                        const uint16_t* const (&words)[kPanels], const Rows& rows,
                                        int64_t tile, int64_t first) {
#pragma GCC unroll 2
    for (int64_t pair = first; pair < first + kPairs; ++pair) {
      if constexpr (kInPlace) {
        for (const uint16_t* const panel : words) {
          __builtin_prefetch(panel + pair * generic::kBlockWords +
                             generic::kPrefetchTiles * generic::kTileWords);
        }
      }
      Words pairs[kPanels];
      for (int j = 0; j < kPanels; ++j) pairs[j] = Words::load(words[j] + pair * generic::kBlockWords);
      add_to_all(sums, pairs, rows, tile, 2 * pair);
      // Without the empty statement the compiler gathers the loads of a tile at the beginning.
      if constexpr (!kInPlace) asm volatile("");
    }
  }

  /// All rows, at most kRows, with kPanels panels, `apart` from each other, whose words are the matrix
  /// itself.
  template <int kPanels, int kRows, typename Rows>
  void in_place(const Rows& rows, int64_t panel, int64_t apart) const {
    PanelSums<Scaling, kRows> sums[kPanels];
    const uint16_t* words[kPanels];
    for (int j = 0; j < kPanels; ++j) sums[j].clear();
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      for (int j = 0; j < kPanels; ++j) {
        words[j] = Tile::words(p_.tiles.weights, (panel + j * apart) * tiles_ + tile);
      }
      add_pairs<kInnerStep / 2>(sums, words, rows, tile, 0);
    }
    for (int j = 0; j < kPanels; ++j) {
      sums[j].store(rows.count, result(0, panel + j * apart), p_.tiles.c_stride);
    }
  }

  /// Unpacks a quarter of a tile and, when that completes a half of the tile, puts the escaped weights of
  /// this half in place. `escaped` is the index of the panel's next entry. With `again`, which says that the
  /// tile has been unpacked before, escaped weights are left out and the index stays.
  template <int kPart>
  VERBATIM_INLINE void unpack_part(generic::TilePlace at, bool again, uint64_t* escaped,
                                   uint16_t* out) const {
    const TilePanels& weights = p_.tiles.weights;
    Tile::template prefetch<kPart>(weights, at.index + generic::kPrefetchTiles);
    if constexpr (kPart == 0) generic::prefetch_escaped_weights(weights.escaped, *escaped);
    const auto store = [&]<int kPair>(Words words) __attribute__((always_inline)) {
      words.store(out + kPair * generic::kBlockWords);
    };
    Tile::template visit_part<kPart>(Tile::prepare(weights, at), store);
    if constexpr (kPart % 2 == 1) {
      const int64_t half = 2 * at.index + kPart / 2;
      if (again || weights.escaped.counts[half] == 0) return;
      generic::apply_escaped_weights(weights.escaped, half, escaped,
                                     out + kPart / 2 * generic::kTileWords / 2);
    }
  }

  /// All rows, at most kRows, with kPanels panels, `apart` from each other, some of whose weights are
  /// escaped. A tile is unpacked to memory and written over while the one before it is multiplied: words that
  /// were just written over in part cannot be loaded until the writes are done, and a processor does the
  /// shuffles of one tile and the products with the other at a time if it finds them close together.
  template <int kPanels, int kRows, typename Rows>
  void unpacked_meanwhile(const Rows& rows, int64_t panel, int64_t apart) const {
    static_assert(kPanels <= 2);
    alignas(64) uint16_t unpacked[2][kPanels][generic::kTileWords];
    PanelSums<Scaling, kRows> sums[kPanels];
    uint64_t escaped[kPanels];
    const uint16_t* words[kPanels];
    const auto place = [&](int j, int64_t tile) {
      return generic::TilePlace{panel + j * apart, tile, (panel + j * apart) * tiles_ + tile};
    };
    for (int j = 0; j < kPanels; ++j) {
      sums[j].clear();
      escaped[j] = first_escaped(panel + j * apart);
      Tile::unpack(p_.tiles.weights, place(j, 0), unpacked[0][j]);
      generic::apply_tile_escaped_weights(p_.tiles.weights.escaped, place(j, 0).index, &escaped[j],
                                          unpacked[0][j]);
    }
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      // The last tile is unpacked once more, and not used.
      const bool last = tile + 1 == tiles_;
      const int64_t next = last ? tile : tile + 1;
      uint16_t(*const out)[generic::kTileWords] = unpacked[(tile + 1) % 2];
      for (int j = 0; j < kPanels; ++j) words[j] = unpacked[tile % 2][j];
      const auto part = [&]<int kPart>() __attribute__((always_inline)) {
        add_pairs<2>(sums, words, rows, tile, 4 * kPart);
        unpack_part<kPart>(place(0, next), last, &escaped[0], out[0]);
        add_pairs<2>(sums, words, rows, tile, 4 * kPart + 2);
        if constexpr (kPanels == 2) unpack_part<kPart>(place(1, next), last, &escaped[1], out[1]);
      };
      part.template operator()<0>();
      part.template operator()<1>();
      part.template operator()<2>();
      part.template operator()<3>();
    }
    for (int j = 0; j < kPanels; ++j) {
      sums[j].store(rows.count, result(0, panel + j * apart), p_.tiles.c_stride);
    }
  }

  /// All rows, at most kRows, with panels side by side, `apart` from each other, whose tiles are unpacked in
  /// registers. They are taken in turns, part by part: a core that reads one place after the other mostly
  /// waits for memory, and what is added to a sum waits for what was added to it before.
  template <int kRows, typename Rows, int... kPanel>
  void side_by_side(const Rows& rows, int64_t panel, int64_t apart,
                    std::integer_sequence<int, kPanel...>) const {
    constexpr int kPanels = sizeof...(kPanel);
    PanelSums<Scaling, kRows> sums[kPanels];
    (sums[kPanel].clear(), ...);
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      const auto place = [&](int64_t j) {
        return generic::TilePlace{panel + j * apart, tile, (panel + j * apart) * tiles_ + tile};
      };
      // Each part asks for its share of the lines, because a burst delays the loads behind it. Without the
      // empty statement the compiler gathers the requests at the beginning.
      const auto fetch = [&]<int kPart>() __attribute__((always_inline)) {
        asm volatile("");
        (Tile::template prefetch<kPart>(p_.tiles.weights, place(kPanel).index + generic::kPrefetchTiles),
         ...);
      };
      (sums[kPanel].before(tile), ...);
      fetch.template operator()<0>();
      (add_part<0>(place(kPanel), rows, sums[kPanel]), ...);
      fetch.template operator()<1>();
      (add_part<1>(place(kPanel), rows, sums[kPanel]), ...);
      fetch.template operator()<2>();
      (add_part<2>(place(kPanel), rows, sums[kPanel]), ...);
      fetch.template operator()<3>();
      (add_part<3>(place(kPanel), rows, sums[kPanel]), ...);
      (sums[kPanel].after(p_, panel + kPanel * apart, tile, rows), ...);
    }
    (sums[kPanel].store(rows.count, result(0, panel + kPanel * apart), p_.tiles.c_stride), ...);
  }

  /// All panels, kPanels of them at a time, far apart.
  template <int kPanels, int kRows, typename Rows>
  void all_panels(const Rows& rows) const {
    const auto multiply = [&]<int kCount>(int64_t panel, int64_t apart) {
      if constexpr (kInPlace) {
        in_place<kCount, kRows>(rows, panel, apart);
      } else if constexpr (kEscaped) {
        unpacked_meanwhile<kCount, kRows>(rows, panel, apart);
      } else {
        side_by_side<kRows>(rows, panel, apart, std::make_integer_sequence<int, kCount>{});
      }
    };
    const int64_t end = p_.tiles.first_panel + p_.tiles.panel_count;
    const int64_t share = p_.tiles.panel_count / kPanels;
    int64_t panel = p_.tiles.first_panel;
    for (; panel < p_.tiles.first_panel + share; ++panel) multiply.template operator()<kPanels>(panel, share);
    for (panel += share * (kPanels - 1); panel < end; ++panel) multiply.template operator()<1>(panel, 0);
  }

  template <int kRows, int kPanels>
  void few_rows() const {
    all_panels<kPanels, kRows>(RowBlock<kRows>(p_.tiles, 0));
  }

  /// Rows of one tile of activations: unpacking a piece of weights to memory would not pay for so few.
  template <int kRows, int kPanels>
  void few_tiled_rows() const {
    all_panels<kPanels, kRows>(TiledRowBlock<kRows>(p_.tiles, 0, 0, tiles_));
  }

  /// A piece of kPanels panels beside each other: where it begins, and the words of its tiles.
  struct Piece {
    int64_t panel;
    int64_t first;
    int64_t count;
    const uint16_t* words;  ///< [panels][stride] tiles, of which `count` are the piece's
    int64_t stride;
  };

  /// Prefetches the piece behind one while blocks of rows are multiplied, evenly: memory answers so many
  /// requests at a time and no more.
  template <int kPanels>
  class Prefetching {
   public:
    Prefetching(const Product& product, const Piece& piece, int64_t blocks)
        : product_(product), blocks_(blocks) {
      const int64_t tiles = product.tiles_;
      const bool in_panel = piece.first + kPiece < tiles;
      const int64_t panel = in_panel ? piece.panel : piece.panel + kManyPanels;
      for (int64_t j = 0; j < kPanels; ++j) {
        next_[j] = (panel + j) * tiles + (in_panel ? piece.first + kPiece : 0);
      }
    }

    /// Called for each tile of each block: asks for that tile's share of the kPanels · kPiece tiles.
    VERBATIM_INLINE void step() {
      for (waiting_ += kPanels; waiting_ >= blocks_; waiting_ -= blocks_) {
        Tile::prefetch(product_.p_.tiles.weights, next_[asked_ % kPanels] + asked_ / kPanels);
        ++asked_;
      }
    }

   private:
    const Product& product_;
    int64_t blocks_;
    int64_t next_[kPanels];
    uint32_t asked_ = 0;
    int64_t waiting_ = 0;
  };

  /// Multiplies a piece with a block of rows, whose sums wait in `waiting`, [kRows][kManyPanels][16].
  template <int kRows, int kPanels>
  void add_piece(const Piece& piece, int64_t row, Prefetching<kPanels>& prefetching, float* waiting) const {
    constexpr int64_t kStride = kManyPanels * kPanelWidth;
    const TiledRowBlock<kRows> rows(p_.tiles, row, piece.first, piece.count);
    PanelSums<Scaling, kRows> sums[kPanels];
    for (int j = 0; j < kPanels; ++j) {
      if (piece.first == 0) {
        sums[j].clear();
      } else {
        sums[j].load(waiting + j * kPanelWidth, kStride);
      }
    }
    for (int64_t tile = piece.first; tile < piece.first + piece.count; ++tile) {
      const int64_t i = tile - piece.first;
      prefetching.step();
      for (int j = 0; j < kPanels; ++j) sums[j].before(tile);
      for (int64_t pair = 0; pair < kInnerStep / 2; ++pair) {
        for (int j = 0; j < kPanels; ++j) {
          const int64_t at = j * piece.stride + i;
          const Words words =
              Words::load(piece.words + at * generic::kTileWords + pair * generic::kBlockWords);
          sums[j].add(words, rows, tile, 2 * pair);
        }
      }
      for (int j = 0; j < kPanels; ++j) sums[j].after(p_, piece.panel + j, tile, rows);
    }
    for (int j = 0; j < kPanels; ++j) sums[j].store(kRows, waiting + j * kPanelWidth, kStride);
  }

  template <int kPanels>
  void add_piece_to_all(const Piece& piece, int64_t first_row, int64_t end_row, float* waiting) const {
    constexpr int64_t kRows = 8;
    const int64_t blocks = (end_row - first_row + kRows - 1) / kRows;
    Prefetching<kPanels> prefetching(*this, piece, blocks);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t row = first_row + block * kRows;
      const int64_t left = end_row - row;
      float* const sums = waiting + block * kRows * kManyPanels * kPanelWidth;
      if (left > 4) {
        add_piece<kRows, kPanels>(piece, row, prefetching, sums);
      } else if (left > 2) {
        add_piece<4, kPanels>(piece, row, prefetching, sums);
      } else {
        add_piece<2, kPanels>(piece, row, prefetching, sums);
      }
    }
  }

  /// Panels beside each other, so that an activation that was loaded meets two of them, with some of the
  /// rows.
  void panels_by_rows(int64_t panel, int64_t panels, int64_t first_row, int64_t end_row) const {
    alignas(64) uint16_t unpacked[kInPlace ? 1 : kManyPanels * kPiece * generic::kTileWords];
    float* const waiting = p_.tiles.sums;
    uint64_t escaped[kManyPanels];
    for (int64_t j = 0; j < panels; ++j) escaped[j] = first_escaped(panel + j);
    for (int64_t first = 0; first < tiles_; first += kPiece) {
      const int64_t count = tiles_ - first < kPiece ? tiles_ - first : kPiece;
      Piece piece{panel, first, count, unpacked, kPiece};
      if constexpr (kInPlace) {
        piece.words = Tile::words(p_.tiles.weights, panel * tiles_ + first);
        piece.stride = tiles_;
      } else {
        for (int64_t j = 0; j < panels; ++j) {
          generic::unpack_tiles<Tile, kEscaped, true>(p_.tiles.weights, panel + j, first, count, &escaped[j],
                                                      unpacked + j * kPiece * generic::kTileWords);
        }
      }
      if (panels == kManyPanels) {
        add_piece_to_all<kManyPanels>(piece, first_row, end_row, waiting);
      } else {
        add_piece_to_all<1>(piece, first_row, end_row, waiting);
      }
    }
    for (int64_t row = first_row; row < end_row; ++row) {
      __builtin_memcpy(result(row, panel), waiting + (row - first_row) * kManyPanels * kPanelWidth,
                       static_cast<size_t>(panels * kPanelWidth) * sizeof(float));
    }
  }

  void many_rows() const {
    const int64_t end = p_.tiles.first_panel + p_.tiles.panel_count;
    for (int64_t row = 0; row < p_.tiles.rows; row += kTogether) {
      const int64_t rows = p_.tiles.rows - row < kTogether ? p_.tiles.rows - row : kTogether;
      for (int64_t panel = p_.tiles.first_panel; panel < end; panel += kManyPanels) {
        panels_by_rows(panel, end - panel < kManyPanels ? end - panel : kManyPanels, row, row + rows);
      }
    }
  }

  const ScaledProduct p_;
  const int64_t tiles_;
};

template <typename Tile, typename Scaling, bool kEscaped = false>
void multiply(const ScaledProduct& p) {
  Product<Tile, Scaling, kEscaped>(p).run();
}

}  // namespace

void register_product(const ScaledProduct& p) {
  using namespace generic;
  switch (p.tiles.reading) {
    case kTileBf16:
      return multiply<Bf16Tile<Words>, Unscaled>(p);
    case kTileMxfp4:
      return multiply<Mxfp4Tile<Words>, Unscaled>(p);
    case kTileBsfpFull:
      return multiply<BsfpFullTile<Words>, Unscaled, true>(p);
    case kTileMxbf16Full:
      return multiply<Mxbf16FullTile<Words>, Unscaled, true>(p);
    case kTileInt4:
      return multiply<Int4Tile<Words, kCodesLessEight>, Scaled<kTilesPerScale>>(p);
    case kTileInt4Asymmetric:
      return multiply<Int4Tile<Words, kPlainCodes>, Scaled<kTilesPerScale, true>>(p);
    case kTileInt8:
      return multiply<Int8Tile<Words>, Scaled<1>>(p);
    case kTileQ8_0:
      return multiply<Q8_0Tile<Words>, Scaled<1>>(p);
    case kTileBsfpFullF16:
    case kTileReadings:
      break;  // never asked for
  }
}

}  // namespace verbatim::avx512
