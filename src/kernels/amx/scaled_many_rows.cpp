#include "kernels/amx/bf16_blocks.h"
#include "kernels/amx/products.h"
#include "kernels/amx/scaled_codes.h"
#include "kernels/avx512/vector.h"

namespace verbatim::amx {

namespace {

// Many rows by panels that are scaled late. Of two panels a piece of k is unpacked into the first-level
// cache, where it stays while the rows pass by; their sums are in the second. Every scale group is a product
// of its own, added to the sums as few rows have it (scaled_product.cpp).

constexpr int64_t kRowTiles = 16;  // of a block: their sums take 32 KB
constexpr int kTogether = 2;
constexpr int64_t kSums = kTileRows * kPanelWidth;

constexpr int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/// Row tiles first .. first + count - 1 of a product.
template <typename Weights>
class ScaledRows {
 public:
  static_assert(kManyRowsPiece % Weights::kGroupTiles == 0);

  ScaledRows(const ScaledProduct& p, int64_t first, int64_t count)
      : p_(p), first_(first), count_(count), row_tiles_((p.tiles.rows + kTileRows - 1) / kTileRows) {}

  void run() {
    int64_t j = 0;
    for (; j + kTogether <= p_.tiles.panel_count; j += kTogether) panels<kTogether>(j);
    if (j < p_.tiles.panel_count) panels<1>(j);
  }

 private:
  int64_t tiles() const { return p_.tiles.weights.tiles; }
  int64_t groups() const { return (tiles() + Weights::kGroupTiles - 1) / Weights::kGroupTiles; }
  typename Weights::Place codes(int64_t panel, int64_t tile) const {
    return Weights::place(p_.tiles.weights, (p_.tiles.first_panel + panel) * tiles() + tile);
  }
  int64_t rows_of(int64_t r) const { return least(kTileRows, p_.tiles.rows - (first_ + r) * kTileRows); }

  template <int kPanels>
  void panels(int64_t panel) {
    for (int64_t tile = 0; tile < tiles(); tile += kManyRowsPiece) {
      const int64_t count = least(kManyRowsPiece, tiles() - tile);
      for (int j = 0; j < kPanels; ++j) {
        for (int64_t t = 0; t < count; ++t) {
          Weights::unpack(codes(panel + j, tile + t), stage_.words[j] + t * kTileElements);
        }
      }
      const BFloat16* const a = p_.tiles.tiled + (tile * row_tiles_ + first_ * count) * kTileElements;
      for (int64_t r = 0; r < count_; ++r)
        piece<kPanels>(a + r * count * kTileElements, r, panel, tile, count);
    }
    add_waiting<kPanels>(panel, buffer_);
    for (int64_t r = 0; r < count_; ++r) put_down<kPanels>(r, panel);
  }

  /// The scale groups of a piece for a row tile. The products of one are added after the next was multiplied,
  /// so that nothing waits for what was just stored.
  template <int kPanels>
  VERBATIM_INLINE void piece(const BFloat16* a, int64_t r, int64_t panel, int64_t tile, int64_t count) {
    for (int64_t t = 0; t < count; t += Weights::kGroupTiles) {
      const int64_t end = least(t + Weights::kGroupTiles, count);
      buffer_ ^= 1;
      product<kPanels>(a, t, end, stage_.products[buffer_]);
      add_waiting<kPanels>(panel, buffer_ ^ 1);
      waiting_row_ = r;
      waiting_group_ = (tile + t) / Weights::kGroupTiles;
    }
  }

  template <int kPanels>
  VERBATIM_INLINE void add_waiting(int64_t panel, int buffer) {
    if (waiting_row_ >= 0) add<kPanels>(waiting_row_, panel, waiting_group_, stage_.products[buffer]);
    waiting_row_ = -1;
  }

  template <int kPanels>
  VERBATIM_INLINE void product(const BFloat16* a, int64_t begin, int64_t end, float* products) {
    tile_load<0>(kZeros, 64);  // products into what `tilezero` cleared do not overlap
    if constexpr (kPanels > 1) tile_load<1>(kZeros, 64);
    for (int64_t t = begin; t < end; ++t) {
      tile_load<4>(a + t * kTileElements, kInnerStep * 2);
      tile_load<5>(stage_.words[0] + t * kTileElements, 64);
      tile_dot_bf16<0, 4, 5>();
      if constexpr (kPanels > 1) {
        tile_load<6>(stage_.words[1] + t * kTileElements, 64);
        tile_dot_bf16<1, 4, 6>();
      }
    }
    tile_store<0>(products, 64);
    if constexpr (kPanels > 1) tile_store<1>(products + kSums, 64);
  }

  template <int kPanels>
  VERBATIM_INLINE void add(int64_t r, int64_t panel, int64_t group, const float* products) {
    const Float16* const scales = reinterpret_cast<const Float16*>(p_.tiles.weights.scales);
    for (int j = 0; j < kPanels; ++j) {
      const int64_t index = ((p_.tiles.first_panel + panel + j) * groups() + group) * kPanelWidth;
      generic::add_scaled_group<avx512::F32x16, Weights::kZeros>({
          .products = products + j * kSums,
          .products_stride = kPanelWidth,
          .rows = rows_of(r),
          .scales = scales + index,
          .zeros = Weights::kZeros ? p_.zeros + index : nullptr,
          .group_sums =
              Weights::kZeros ? p_.group_sums + (first_ + r) * kTileRows * groups() + group : nullptr,
          .group_sums_stride = groups(),
          .c = stage_.sums[j] + r * kSums,
          .c_stride = kPanelWidth,
          .accumulate = group > 0,
      });
    }
  }

  template <int kPanels>
  void put_down(int64_t r, int64_t panel) const {
    const int64_t row = (first_ + r) * kTileRows;
    for (int j = 0; j < kPanels; ++j) {
      float* const to = p_.tiles.c + row * p_.tiles.c_stride + (panel + j) * kPanelWidth;
      for (int64_t i = 0; i < rows_of(r); ++i) {
        _mm512_storeu_ps(to + i * p_.tiles.c_stride,
                         _mm512_load_ps(stage_.sums[j] + r * kSums + i * kPanelWidth));
      }
    }
  }

  alignas(64) static constexpr float kZeros[kSums] = {};

  struct alignas(4096) Stage {
    uint16_t words[kTogether][kManyRowsPiece * kTileElements];
    float products[2][kTogether * kSums];
    float sums[kTogether][kRowTiles * kSums];
  };

  const ScaledProduct& p_;
  int64_t first_;
  int64_t count_;
  int64_t row_tiles_;  // of the whole product
  int buffer_ = 0;
  int64_t waiting_row_ = -1;  // whose products are in the buffer and not in the sums yet
  int64_t waiting_group_ = 0;
  Stage stage_;
};

template <TileReading kReading>
void multiply(const ScaledProduct& p) {
  const int64_t row_tiles = (p.tiles.rows + kTileRows - 1) / kTileRows;
  for (int64_t first = 0; first < row_tiles; first += kRowTiles) {
    ScaledRows<Codes<kReading>>(p, first, least(kRowTiles, row_tiles - first)).run();
  }
}

}  // namespace

void scaled_many_rows(const ScaledProduct& p) {
  configure_wide(kTileRows);
  switch (p.tiles.reading) {
    case kTileInt4:
      multiply<kTileInt4>(p);
      break;
    case kTileInt4Asymmetric:
      multiply<kTileInt4Asymmetric>(p);
      break;
    case kTileQ8_0:
      multiply<kTileQ8_0>(p);
      break;
    default:
      multiply<kTileInt8>(p);
      break;
  }
  _tile_release();
}

}  // namespace verbatim::amx
