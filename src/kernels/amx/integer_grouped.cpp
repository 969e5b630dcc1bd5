#include "kernels/amx/integer_blocks.h"
#include "kernels/amx/products.h"
#include "kernels/generic/tiles.h"

namespace verbatim::amx {

namespace {

// `int4` with activations in four bits, which share a scale over 128 inputs as the weights do: four tiles of
// codes are two tile products into one tile of sums, which is scaled once.

constexpr int64_t kGroupTiles = generic::integer_dot_tiles(kIntegerInt4Grouped);
constexpr int64_t kCodeBytes = generic::integer_code_bytes(kIntegerInt4Grouped);
constexpr int64_t kTileBytes = 512;  // unpacked
constexpr int64_t kDotTiles = 2;     // of a tile product

/// A step is a group.
template <int kRows, int kPanels>
class Block : public IntegerBlocks<Block<kRows, kPanels>, kRows, kPanels, 1> {
  using Blocks = IntegerBlocks<Block, kRows, kPanels, 1>;

 public:
  using Blocks::Blocks;

 private:
  friend Blocks;
  using Blocks::a_;
  using Blocks::row_;
  using Blocks::rows_;
  using Blocks::tiles_;
  using Blocks::weights_;

  int64_t steps() const { return groups_; }

  VERBATIM_INLINE int64_t tiles_of(int64_t g) const {
    const int64_t left = tiles_ - g * kGroupTiles;
    return left < kGroupTiles ? left : kGroupTiles;
  }

  VERBATIM_INLINE void unpack(int64_t panel, int64_t g, int j) {
    const uint8_t* const codes = weights_.codes + (panel * tiles_ + g * kGroupTiles) * kCodeBytes;
    uint8_t* const out = stage_.bytes[g % 2][j];
    const int64_t count = tiles_of(g);
    for (int64_t t = 0; t < count; ++t) {
      generic::prefetch_ahead<kCodeBytes>(codes + t * kCodeBytes, generic::kCodePrefetchBytes);
      unpack_bytes<kIntegerInt4>(codes + t * kCodeBytes, out + t * kTileBytes);
    }
    // A tile product takes two tiles; zeros make it indifferent what follows the activations.
    if (count % kDotTiles == 0) return;
    for (int64_t i = 0; i < kTileBytes; i += 64) {
      _mm512_store_si512(out + count * kTileBytes + i, _mm512_setzero_si512());
    }
  }

  template <int kPanel>
  VERBATIM_INLINE void dot(int64_t /*panel*/, int64_t g) {
    const int8_t* const a = a_.codes + row_ * a_.stride + g * kGroupTiles * kInnerStep;
    const uint8_t* const weights = stage_.bytes[g % 2][kPanel];
    tile_zero<kPanel>();
    tile_load<4>(a, a_.stride);
    tile_load<6>(weights, 64);
    tile_dot_int8<kPanel, 4, 6, false>();
    if (tiles_of(g) > kDotTiles) {
      tile_load<5>(a + kDotTiles * kInnerStep, a_.stride);
      tile_load<7>(weights + kDotTiles * kTileBytes, 64);
      tile_dot_int8<kPanel, 5, 7, false>();
    }
    tile_store<kPanel>(stage_.dots[g % 2][kPanel], 64);
  }

  /// sums += float(dots) · scales of the columns · scale of the row's group
  VERBATIM_INLINE void add_scaled(int64_t panel, int64_t g, int j, __m512 (&sums)[kRows]) const {
    const uint8_t* const scales =
        weights_.scales + (panel * groups_ + g) * generic::integer_scale_bytes(kIntegerInt4Grouped);
    __builtin_prefetch(scales + generic::kScalePrefetchBytes);
    const __m512 column_scales = scales_of(scales);
    for (int r = 0; r < kRows; ++r) {
      const int64_t row_group = (row_ + (r < rows_ ? r : 0)) * tiles_ + g * kGroupTiles;
      const __m512i dot = _mm512_load_si512(stage_.dots[g % 2][j] + r * 16);
      const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(dot), column_scales);
      sums[r] = _mm512_add_ps(sums[r], _mm512_mul_ps(scaled, _mm512_set1_ps(a_.scales[row_group])));
    }
  }

  struct alignas(4096) Stage {
    uint8_t bytes[2][kPanels][kGroupTiles * kTileBytes];
    int32_t dots[2][kPanels][kRows * 16];
  };

  int64_t groups_ = (tiles_ + kGroupTiles - 1) / kGroupTiles;
  Stage stage_{};
};

void configure(int rows) {
  TileConfig config;
  for (int tile = 0; tile < 2; ++tile) config.set(tile, rows, 64);  // sums
  config.set(4, rows, 64);                                          // activations: 64 of a group
  config.set(5, rows, 64);
  config.set(6, 16, 64);  // weights: 16 quads × 16 columns
  config.set(7, 16, 64);
  config.load();
}

}  // namespace

void integer_int4_grouped(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  multiply_blocks<Block<8, 2>, Block<16, 1>>(a, weights, c, c_stride, configure);
}

}  // namespace verbatim::amx
