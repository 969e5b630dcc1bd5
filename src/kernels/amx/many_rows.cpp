#include "kernels/amx/bf16_blocks.h"
#include "kernels/amx/products.h"

namespace verbatim::amx {

namespace {

// Blocks for the caches. The activations of a row block and a block of k (1 MB) and the sums of a row block
// and a group of panels (256 KB) stay in the second-level cache while the panels of the group pass by; of two
// panels, a piece of k (16 KB) stays in the first-level cache while the rows pass by. More panels or row
// tiles together would ask less of the caches, but take more tile registers (docs/performance.md). Putting
// sums down and taking them up again leaves the order of additions as it is.
constexpr int64_t kRowTiles = 16;
constexpr int64_t kBlockTiles = 64;
constexpr int64_t kTogether = 2;
static_assert(kRowTiles * kTileRows * kManyRowsPanels * kPanelWidth == kManyRowsScratch);
static_assert(kBlockTiles % kManyRowsPiece == 0);

// Not the standard library's: what is inlined here must not be code of other files too.
constexpr int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}
constexpr int64_t ceil_div(int64_t value, int64_t step) {
  return (value + step - 1) / step;
}

/// Prefetches the weights of the next piece, a few lines per step, while the rows are multiplied with this
/// one.
template <int kPanels>
struct NextPiece {
  const BFloat16* weights;
  int64_t panel_stride;
  int lines_per_step;

  VERBATIM_INLINE void fetch() {
    for (int line = 0; line < lines_per_step; ++line, weights += kInnerStep) {
      for (int j = 0; j < kPanels; ++j) {
        _mm_prefetch(reinterpret_cast<const char*>(weights + j * panel_stride), _MM_HINT_T1);
      }
    }
  }
};

/// The operands of a product of a row tile and one or two panels over a piece of k.
struct PieceBlock {
  const BFloat16* a;  ///< tiles one after the other
  const BFloat16* weights;
  int64_t panel_stride;
  int64_t tiles;
  float* sums;  ///< those of the next panel lie kRowTiles tiles further on
  bool accumulate;
};

template <int kPanels>
VERBATIM_INLINE void piece_block(const PieceBlock& p, NextPiece<kPanels>& next) {
  constexpr int64_t kSums = kTileRows * kPanelWidth;
  constexpr int64_t kAhead = 4;  // tiles of activations that are fetched before they are used
  const auto each_panel = [](auto&& work) __attribute__((always_inline)) {
    work.template operator()<0>();
    if constexpr (kPanels > 1) work.template operator()<1>();
  };
  each_panel([&]<int j>() __attribute__((always_inline)) {
    begin<j>(p.sums + j * kRowTiles * kSums, kPanelWidth * 4, p.accumulate);
  });
  for (int64_t t = 0; t < p.tiles; ++t) {
    const BFloat16* const a = p.a + t * kTileElements;
    next.fetch();
    prefetch_lines(a + kAhead * kTileElements, 16);
    tile_load<4>(a, kInnerStep * 2);
    each_panel([&]<int j>() __attribute__((always_inline)) {
      constexpr int kWeights = 5;  // of either panel: fewer registers leave more to rename
      tile_load<kWeights>(p.weights + j * p.panel_stride + t * kTileElements, 64);
      tile_dot_bf16<j, 4, kWeights>();
    });
  }
  each_panel([&]<int j>() __attribute__((always_inline)) {
    tile_store<j>(p.sums + j * kRowTiles * kSums, kPanelWidth * 4);
  });
}

/// Row tiles first .. first + count - 1 of a product.
class RowBlock {
 public:
  RowBlock(const ManyRowsProduct& p, int64_t first, int64_t count)
      : p_(p), first_(first), count_(count), row_tiles_(ceil_div(p.rows, kTileRows)) {}

  /// Multiplies with panels panel .. panel + panels - 1, up to kManyRowsPanels.
  void group(int64_t panel, int64_t panels) const {
    for (int64_t block = 0; block < p_.tiles; block += kBlockTiles) {
      const int64_t end = least(block + kBlockTiles, p_.tiles);
      for (int64_t j = 0; j < panels; j += kTogether) {
        j + 1 < panels ? pieces<2>(panel, j, block, end) : pieces<1>(panel, j, block, end);
      }
    }
    for (int64_t r = 0; r < count_; ++r) {
      for (int64_t j = 0; j < panels; ++j) put_down(r, panel, j);
    }
  }

 private:
  float* sums(int64_t row_tile, int64_t j) const {
    return p_.sums + (j * kRowTiles + row_tile) * kTileRows * kPanelWidth;
  }

  /// Multiplies tiles block .. end - 1 of k with kPanels panels of the group, from the j-th on.
  template <int kPanels>
  void pieces(int64_t panel, int64_t j, int64_t block, int64_t end) const {
    const BFloat16* const weights = p_.panels + (panel + j) * p_.panel_stride;
    for (int64_t tile = block; tile < end; tile += kManyRowsPiece) {
      const int64_t tiles = least(kManyRowsPiece, end - tile);
      const int64_t ahead = tile + tiles < end ? (tile + tiles) * kTileElements
                                               : kPanels * p_.panel_stride + block * kTileElements;
      NextPiece<kPanels> next{weights + ahead, p_.panel_stride,
                              static_cast<int>(ceil_div(kTileRows, count_))};
      const BFloat16* const a = p_.a + (tile * row_tiles_ + first_ * tiles) * kTileElements;
      for (int64_t r = 0; r < count_; ++r) {
        piece_block<kPanels>({.a = a + r * tiles * kTileElements,
                              .weights = weights + tile * kTileElements,
                              .panel_stride = p_.panel_stride,
                              .tiles = tiles,
                              .sums = sums(r, j),
                              .accumulate = tile > 0},
                             next);
      }
    }
  }

  void put_down(int64_t row_tile, int64_t panel, int64_t j) const {
    const float* const from = sums(row_tile, j);
    const int64_t row = (first_ + row_tile) * kTileRows;
    float* const to = p_.c + row * p_.c_stride + (panel + j) * kPanelWidth;
    for (int64_t r = 0; r < least(kTileRows, p_.rows - row); ++r) {
      _mm512_storeu_ps(to + r * p_.c_stride, _mm512_loadu_ps(from + r * kPanelWidth));
    }
  }

  const ManyRowsProduct& p_;
  int64_t first_;
  int64_t count_;
  int64_t row_tiles_;  // of the whole product
};

}  // namespace

void many_rows_bf16(const ManyRowsProduct& p) {
  configure_wide(kTileRows);
  const int64_t row_tiles = ceil_div(p.rows, kTileRows);
  for (int64_t first = 0; first < row_tiles; first += kRowTiles) {
    const RowBlock rows(p, first, least(kRowTiles, row_tiles - first));
    for (int64_t panel = 0; panel < p.panel_count; panel += kManyRowsPanels) {
      rows.group(panel, least(kManyRowsPanels, p.panel_count - panel));
    }
  }
  _tile_release();
}

}  // namespace verbatim::amx
