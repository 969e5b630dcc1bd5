#include "kernels/amx/integer_blocks.h"
#include "kernels/amx/products.h"
#include "kernels/generic/tiles.h"

namespace verbatim::amx {

namespace {

/// A step is a tile.
template <int kKind, int kRows, int kPanels>
class Block : public IntegerBlocks<Block<kKind, kRows, kPanels>, kRows, kPanels, 2> {
  using Blocks = IntegerBlocks<Block, kRows, kPanels, 2>;

 public:
  using Blocks::Blocks;

 private:
  friend Blocks;
  using Blocks::a_;
  using Blocks::row_;
  using Blocks::rows_;
  using Blocks::tiles_;
  using Blocks::weights_;

  static constexpr int64_t kDots = 4;  // tiles whose dot products are kept
  static constexpr int64_t kBytes = generic::integer_code_bytes(kKind);
  static constexpr int64_t kScaleTiles = generic::integer_scale_tiles(kKind);
  static constexpr int64_t kScaleBytes = generic::integer_scale_bytes(kKind);

  int64_t steps() const { return tiles_; }

  const uint8_t* tile_codes(int64_t panel, int64_t t) const {
    return weights_.codes + (panel * tiles_ + t) * kBytes;
  }

  VERBATIM_INLINE void unpack(int64_t panel, int64_t t, int j) {
    const uint8_t* const codes = tile_codes(panel, t);
    generic::prefetch_ahead<kBytes>(codes, generic::kCodePrefetchBytes);
    if constexpr (kKind != kIntegerInt8) unpack_bytes<kKind>(codes, stage_.bytes[t % 2][j]);
  }

  template <int kPanel>
  VERBATIM_INLINE void dot(int64_t panel, int64_t t) {
    tile_zero<kPanel>();
    tile_load<4>(a_.codes + row_ * a_.stride + t * kInnerStep, a_.stride);
    tile_load<6 + kPanel>(kKind == kIntegerInt8 ? tile_codes(panel, t) : stage_.bytes[t % 2][kPanel], 64);
    tile_dot_int8<kPanel, 4, 6 + kPanel, kKind == kIntegerInt4Asymmetric>();
    tile_store<kPanel>(stage_.dots[t % kDots][kPanel], 64);
  }

  /// sums += float(dots - correction) · (scale of the row's group · scales of the columns)
  VERBATIM_INLINE void add_scaled(int64_t panel, int64_t t, int j, __m512 (&sums)[kRows]) const {
    const int64_t group = panel * groups_ + t / kScaleTiles;
    const uint8_t* const scales = weights_.scales + group * kScaleBytes;
    __builtin_prefetch(scales + generic::kScalePrefetchBytes);
    const __m512 column_scales = scales_of(scales);
    [[maybe_unused]] __m512i zeros = _mm512_setzero_si512();
    if constexpr (kKind == kIntegerInt4Asymmetric) {
      zeros = _mm512_cvtepu8_epi32(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights_.zeros + group * kPanelWidth)));
    }
    for (int r = 0; r < kRows; ++r) {
      const int64_t row_group = (row_ + (r < rows_ ? r : 0)) * tiles_ + t;
      __m512i dot = _mm512_load_si512(stage_.dots[t % kDots][j] + r * 16);
      if constexpr (kKind == kIntegerInt4Asymmetric) {
        dot = _mm512_sub_epi32(dot, _mm512_mullo_epi32(zeros, _mm512_set1_epi32(a_.sums[row_group])));
      }
      const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(dot), column_scales);
      sums[r] = _mm512_add_ps(sums[r], _mm512_mul_ps(scaled, _mm512_set1_ps(a_.scales[row_group])));
    }
  }

  /// Page aligned, so that its stores are not taken for what the loads of weights wait for more often than
  /// need be. Rows of `dots` that no row of activations is behind stay zero.
  struct alignas(4096) Stage {
    uint8_t bytes[2][kPanels][512];
    int32_t dots[kDots][kPanels][kRows * 16];
  };

  int64_t groups_ = (tiles_ + kScaleTiles - 1) / kScaleTiles;
  Stage stage_{};
};

void configure(int rows) {
  TileConfig config;
  for (int tile = 0; tile < 4; ++tile) config.set(tile, rows, 64);  // sums
  config.set(4, rows, 32);                                          // activations: 32 of a group
  config.set(6, 8, 64);                                             // weights: 8 quads × 16 columns
  config.set(7, 8, 64);
  config.load();
}

template <int kKind>
void product(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  multiply_blocks<Block<kKind, 8, 2>, Block<kKind, 16, 1>>(a, weights, c, c_stride, configure);
}

}  // namespace

void integer_int4(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  product<kIntegerInt4>(a, weights, c, c_stride);
}
void integer_int4_asymmetric(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  product<kIntegerInt4Asymmetric>(a, weights, c, c_stride);
}
void integer_int8(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  product<kIntegerInt8>(a, weights, c, c_stride);
}

}  // namespace verbatim::amx
