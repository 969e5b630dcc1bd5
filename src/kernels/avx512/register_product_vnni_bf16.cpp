#include "kernels/avx512/register_product.h"

#include <type_traits>
#include <utility>

#include "kernels/avx512/words.h"
#include "kernels/generic/scaled.h"
#include "kernels/generic/tiles.h"

namespace verbatim::avx512 {

namespace {

using Words = U16x32;

/// How the products of a reading are scaled: not at all, or group by group.
struct Unscaled {
  static constexpr int64_t kGroupTiles = 0;
  [[maybe_unused]] static constexpr bool kZeros = false;
};
template <int64_t kTiles, bool kWithZeros = false>
struct Scaled {
  static constexpr int64_t kGroupTiles = kTiles;
  static constexpr bool kZeros = kWithZeros;
};

/// Rows of activations, as they lie in a matrix. Rows beyond the last one are the last once more, and their
/// results are not stored.
template <int kRows>
struct RowBlock {
  const BFloat16* from[kRows];
  int64_t first;
  int64_t count;

  RowBlock(const TileProduct& p, int64_t row)
      : first(row), count(p.rows - row < kRows ? p.rows - row : kRows) {
    for (int64_t r = 0; r < kRows; ++r) from[r] = p.a + (row + (r < count ? r : count - 1)) * p.a_stride;
  }
  VERBATIM_INLINE const BFloat16* at(int64_t r, int64_t tile) const { return from[r] + tile * kInnerStep; }
};

/// The number of rows in a tile of activations.
constexpr int64_t kRowTile = 16;

/// Rows of activations in tiles (TileProduct::tiled). Rows beyond the last one are zeros, and their results
/// are not stored.
template <int kRows>
struct TiledRowBlock {
  const BFloat16* from;  ///< the first row's first input of the piece
  int64_t piece;         ///< the first tile of the piece
  int64_t first;
  int64_t count;

  TiledRowBlock(const TileProduct& p, int64_t row, int64_t first_tile, int64_t tiles)
      : piece(first_tile), first(row), count(p.rows - row < kRows ? p.rows - row : kRows) {
    const int64_t row_tiles = (p.rows + kRowTile - 1) / kRowTile;
    const int64_t before = first_tile * row_tiles + row / kRowTile * tiles;
    from = p.tiled + (before * kRowTile + row % kRowTile) * kInnerStep;
  }
  VERBATIM_INLINE const BFloat16* at(int64_t r, int64_t tile) const {
    return from + ((tile - piece) * kRowTile + r) * kInnerStep;
  }
};

/// The sums of a block of rows with a panel. The order of the operations is that of
/// DotProductAdding for unpacked panels, pair after pair, and of generic::scaled_product() after it.
template <typename Scaling, int kRows>
struct PanelSums {
  static constexpr bool kScaled = Scaling::kGroupTiles != 0;
  __m512 sums[kRows];
  __m512 products[kScaled ? kRows : 1];

  VERBATIM_INLINE __m512& open(int r) {
    if constexpr (kScaled) return products[r];
    return sums[r];
  }
  VERBATIM_INLINE void clear() {
    for (__m512& sum : sums) sum = _mm512_setzero_ps();
  }
  VERBATIM_INLINE void load(const float* c, int64_t stride) {
    for (int r = 0; r < kRows; ++r) sums[r] = _mm512_loadu_ps(c + r * stride);
  }
  VERBATIM_INLINE void store(int64_t count, float* c, int64_t stride) const {
    for (int r = 0; r < kRows; ++r) {
      if (r < count) _mm512_storeu_ps(c + r * stride, sums[r]);
    }
  }

  VERBATIM_INLINE void before(int64_t tile) {
    if constexpr (kScaled) {
      if (Scaling::kGroupTiles > 1 && tile % Scaling::kGroupTiles != 0) return;
      for (__m512& product : products) product = _mm512_setzero_ps();
    }
  }
  /// Adds the product with a pair of inputs of a tile.
  template <typename Rows>
  VERBATIM_INLINE void add(Words words, const Rows& rows, int64_t tile, int64_t input) {
    for (int r = 0; r < kRows; ++r) {
      int32_t pair;
      __builtin_memcpy(&pair, rows.at(r, tile) + input, sizeof pair);
      open(r) = _mm512_dpbf16_ps(open(r), reinterpret_cast<__m512bh>(words.lanes),
                                 reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair)));
    }
  }
  /// Scales the products of a group behind its last tile.
  template <typename Rows>
  VERBATIM_INLINE void after(const ScaledProduct& p, int64_t panel, int64_t tile, const Rows& rows) {
    if constexpr (kScaled) {
      constexpr int64_t kTiles = Scaling::kGroupTiles;
      const int64_t tiles = p.tiles.weights.tiles;
      if (kTiles > 1 && tile % kTiles != kTiles - 1 && tile + 1 != tiles) return;
      const int64_t groups = (tiles + kTiles - 1) / kTiles;
      const int64_t group = tile / kTiles;
      const int64_t index = (panel * groups + group) * kPanelWidth;
      const F32x16 scale = F32x16::load(reinterpret_cast<const Float16*>(p.tiles.weights.scales) + index);
      F32x16 zero = F32x16::set(0.0f);
      if constexpr (Scaling::kZeros) zero = F32x16::load(p.zeros + index);
      for (int r = 0; r < kRows; ++r) {
        const int64_t row = rows.first + (r < rows.count ? r : rows.count - 1);
        const F32x16 scaled = generic::scaled_product<Scaling::kZeros>(F32x16{products[r]}, scale, zero,
                                                                       p.group_sums, row * groups + group);
        sums[r] = group == 0 ? scaled.lanes : (F32x16{sums[r]} + scaled).lanes;
      }
    }
  }
};

/// Products of all rows with panels of a reading.
template <typename Tile, typename Scaling, bool kEscaped>
class Product {
 public:
  explicit Product(const ScaledProduct& p) : p_(p), tiles_(p.tiles.weights.tiles) {}

  void run() const {
    const int64_t rows = p_.tiles.rows;
    if (rows == 0) return;
    if (rows == 1) return few_rows<1, (kEscaped ? 1 : 4)>();
    if (rows == 2) return few_rows<2, (kEscaped ? 1 : 4)>();
    if (rows <= 4) return few_rows<4, (kEscaped ? 1 : 2)>();
    if (rows <= 6) return few_rows<6, 1>();
    static_assert(kFewRegisterRows == 8);
    if (rows <= kFewRegisterRows) return few_rows<8, 1>();
    static_assert(kRowTile == 16);
    if (rows <= 12) return few_tiled_rows<12>();
    if (rows <= kRowTile) return few_tiled_rows<16>();
    many_rows();
  }

 private:
  /// The tiles of a panel that are unpacked to memory at a time: 8 KB, a multiple of every group's.
  static constexpr int64_t kPiece = kManyRowsPiece;
  /// The number of panels that many rows are multiplied with side by side.
  static constexpr int64_t kManyPanels = 2;
  /// The number of rows that meet a piece before the next one is unpacked.
  static constexpr int64_t kTogether = 256;
  static_assert(kTogether * kManyPanels * kPanelWidth <= kManyRowsScratch);

  float* result(int64_t row, int64_t panel) const {
    return p_.tiles.c + row * p_.tiles.c_stride + (panel - p_.tiles.first_panel) * kPanelWidth;
  }
  uint64_t first_escaped(int64_t panel) const {
    return kEscaped ? p_.tiles.weights.escaped.starts[panel] : 0;
  }
  VERBATIM_INLINE bool has_escaped(int64_t index) const {
    if constexpr (!kEscaped) return false;
    uint16_t both;
    __builtin_memcpy(&both, p_.tiles.weights.escaped.counts + 2 * index, sizeof both);
    return both != 0;
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
    Tile::template visit_part<kPart>(p_.tiles.weights, at, sink(at.tile, rows, sums));
  }

  /// Unpacks a tile, to memory if it has escaped weights, and multiplies it with a block of rows.
  template <typename Rows, typename Sums>
  VERBATIM_INLINE void add_tile(generic::TilePlace at, const Rows& rows, uint64_t* escaped,
                                Sums& sums) const {
    if (has_escaped(at.index)) {
      alignas(64) uint16_t words[generic::kTileWords];
      Tile::unpack(p_.tiles.weights, at, words);
      generic::apply_tile_escaped_weights(p_.tiles.weights.escaped, at.index, escaped, words);
      for (int64_t pair = 0; pair < kInnerStep / 2; ++pair) {
        sums.add(Words::load(words + pair * generic::kBlockWords), rows, at.tile, 2 * pair);
      }
    } else {
      Tile::visit(p_.tiles.weights, at, sink(at.tile, rows, sums));
    }
  }

  /// All rows, at most kRows, with panels side by side, `apart` from each other. Where no weights are
  /// escaped, their tiles are taken in turns, part by part: a core that reads one place after the other
  /// mostly waits for memory, and what is added to a sum waits for what was added to it before.
  template <int kRows, typename Rows, int... kPanel>
  void side_by_side(const Rows& rows, int64_t panel, int64_t apart,
                    std::integer_sequence<int, kPanel...>) const {
    constexpr int kPanels = sizeof...(kPanel);
    PanelSums<Scaling, kRows> sums[kPanels];
    uint64_t escaped[kPanels];
    (sums[kPanel].clear(), ...);
    ((escaped[kPanel] = first_escaped(panel + kPanel * apart)), ...);
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      const auto place = [&](int64_t j) {
        return generic::TilePlace{panel + j * apart, tile, (panel + j * apart) * tiles_ + tile};
      };
      (Tile::prefetch(p_.tiles.weights, place(kPanel).index + generic::kPrefetchTiles), ...);
      (sums[kPanel].before(tile), ...);
      if constexpr (kEscaped) {
        (add_tile(place(kPanel), rows, &escaped[kPanel], sums[kPanel]), ...);
      } else {
        (add_part<0>(place(kPanel), rows, sums[kPanel]), ...);
        (add_part<1>(place(kPanel), rows, sums[kPanel]), ...);
        (add_part<2>(place(kPanel), rows, sums[kPanel]), ...);
        (add_part<3>(place(kPanel), rows, sums[kPanel]), ...);
      }
      (sums[kPanel].after(p_, panel + kPanel * apart, tile, rows), ...);
    }
    (sums[kPanel].store(rows.count, result(0, panel + kPanel * apart), p_.tiles.c_stride), ...);
  }

  template <int kRows, int kPanels>
  void few_rows() const {
    const int64_t end = p_.tiles.first_panel + p_.tiles.panel_count;
    const int64_t share = p_.tiles.panel_count / kPanels;
    int64_t panel = p_.tiles.first_panel;
    constexpr std::make_integer_sequence<int, kPanels> kAll{};
    constexpr std::make_integer_sequence<int, 1> kOne{};
    const RowBlock<kRows> rows(p_.tiles, 0);
    for (; panel < p_.tiles.first_panel + share; ++panel) side_by_side<kRows>(rows, panel, share, kAll);
    for (panel += share * (kPanels - 1); panel < end; ++panel) side_by_side<kRows>(rows, panel, 0, kOne);
  }

  /// Rows of one tile of activations: unpacking weights to memory would not pay for so few.
  template <int kRows>
  void few_tiled_rows() const {
    const TiledRowBlock<kRows> rows(p_.tiles, 0, 0, tiles_);
    const int64_t end = p_.tiles.first_panel + p_.tiles.panel_count;
    for (int64_t panel = p_.tiles.first_panel; panel < end; ++panel) {
      side_by_side<kRows>(rows, panel, 0, std::make_integer_sequence<int, 1>{});
    }
  }

  /// Whether the words of tiles are the matrix itself.
  static constexpr bool kInPlace = std::is_same_v<Tile, generic::Bf16Tile<Words>>;

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
