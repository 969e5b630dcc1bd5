#include "kernels/amx/products.h"
#include "kernels/amx/tiles.h"
#include "kernels/avx512/vector.h"
#include "kernels/generic/integer.h"
#include "kernels/generic/tiles.h"

namespace verbatim::amx {

namespace {

constexpr int64_t kTileBytes = generic::integer_code_bytes(kIntegerInt8);

/// kRows rows from `row` on, of which `rows` are there, by kPanels panels side by side. Weights and
/// activations share scales in every tile, so each tile's products are stored and scaled, two tiles behind,
/// so that nothing waits.
template <int kRows, int kPanels>
class Block {
 public:
  static constexpr int kMostRows = kRows;

  Block(const Int8Rows& a, const IntegerPanels& weights, int64_t row, int64_t rows)
      : a_(a), weights_(weights), row_(row), rows_(rows) {}

  /// Multiplies with the panels `panel`, `panel` + apart, ...
  void multiply(int64_t panel, int64_t apart, float* c, int64_t c_stride) {
    __m512 sums[kPanels][kRows];
    for (auto& panel_sums : sums) {
      for (__m512& sum : panel_sums) sum = _mm512_setzero_ps();
    }
    for (int64_t t = 0; t < tiles_; ++t) {
      const auto each = [&]<int kPanel>() __attribute__((always_inline)) {
        if constexpr (kPanel < kPanels) {
          const int64_t at = panel + kPanel * apart;
          dot<kPanel>(at, t);
          if (t >= kLag) add_scaled(at, t - kLag, kPanel, sums[kPanel]);
        }
      };
      each.template operator()<0>();
      each.template operator()<1>();
    }
    for (int j = 0; j < kPanels; ++j) {
      const int64_t at = panel + j * apart;
      for (int64_t t = tiles_ < kLag ? 0 : tiles_ - kLag; t < tiles_; ++t) add_scaled(at, t, j, sums[j]);
      for (int r = 0; r < kRows; ++r) {
        if (r < rows_) _mm512_storeu_ps(c + (row_ + r) * c_stride + at * kPanelWidth, sums[j][r]);
      }
    }
  }

 private:
  static constexpr int64_t kLag = 2;
  static constexpr int64_t kDots = 4;  // tiles whose dot products are kept

  template <int kPanel>
  VERBATIM_INLINE void dot(int64_t panel, int64_t t) {
    const uint8_t* const codes = weights_.codes + (panel * tiles_ + t) * kTileBytes;
    generic::prefetch_bytes<kTileBytes>(codes + generic::kCodePrefetchBytes);
    tile_zero<kPanel>();
    tile_load<4>(a_.codes + row_ * a_.stride + t * kInnerStep, a_.stride);
    tile_load<6 + kPanel>(codes, 64);
    tile_dot_int8<kPanel, 4, 6 + kPanel, false>();
    tile_store<kPanel>(stage_.dots[t % kDots][kPanel], 64);
  }

  /// Computes sums += float(dots) · scales of the columns · scale of the row's group.
  VERBATIM_INLINE void add_scaled(int64_t panel, int64_t t, int j, __m512 (&sums)[kRows]) const {
    const uint8_t* const scales =
        weights_.scales + (panel * tiles_ + t) * generic::integer_scale_bytes(kIntegerInt8);
    __builtin_prefetch(scales + generic::kScalePrefetchBytes);
    const __m512 column_scales = generic::integer_scales<avx512::F32x16, kIntegerInt8>(scales).lanes;
    for (int r = 0; r < kRows; ++r) {
      const int64_t row_group = (row_ + (r < rows_ ? r : 0)) * tiles_ + t;
      const __m512i dot = _mm512_load_si512(stage_.dots[t % kDots][j] + r * 16);
      const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(dot), column_scales);
      sums[r] = _mm512_add_ps(sums[r], _mm512_mul_ps(scaled, _mm512_set1_ps(a_.scales[row_group])));
    }
  }

  /// Page aligned, so that its stores are not taken for what the loads of weights wait for more often than
  /// need be. Rows that no row of activations is behind stay zero.
  struct alignas(4096) Stage {
    int32_t dots[kDots][kPanels][kRows * 16];
  };

  Int8Rows a_;
  IntegerPanels weights_;
  int64_t row_;
  int64_t rows_;
  int64_t tiles_ = a_.k / kInnerStep;
  Stage stage_{};
};

void configure(int rows) {
  TileConfig config;
  for (int tile = 0; tile < 2; ++tile) config.set(tile, rows, 64);  // sums
  config.set(4, rows, 32);                                          // activations: 32 of a group
  config.set(6, 8, 64);                                             // weights: 8 quads × 16 columns
  config.set(7, 8, 64);
  config.load();
}

}  // namespace

// Eight rows leave room for the sums of two panels in registers, sixteen for those of one.
void integer_int8(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  using EightByTwo = Block<8, 2>;
  for (int64_t row = 0; row < a.rows; row += 16) {
    const int64_t rows = a.rows - row < 16 ? a.rows - row : 16;
    configure(static_cast<int>(rows));
    const int64_t paired = rows <= EightByTwo::kMostRows ? weights.panel_count / 2 : 0;
    if (paired > 0) {
      EightByTwo block(a, weights, row, rows);
      for (int64_t panel = 0; panel < paired; ++panel) block.multiply(panel, paired, c, c_stride);
    }
    if (2 * paired == weights.panel_count) continue;
    Block<16, 1> block(a, weights, row, rows);
    for (int64_t panel = 2 * paired; panel < weights.panel_count; ++panel) {
      block.multiply(panel, 0, c, c_stride);
    }
  }
  _tile_release();
}

}  // namespace verbatim::amx
