#include "kernels/amx/products.h"
#include "kernels/amx/tiles.h"
#include "kernels/generic/integer.h"
#include "kernels/generic/tiles.h"

namespace verbatim::amx {

namespace {

// `int4` with activations in four bits, which share a scale over 128 inputs as the weights do: four tiles of
// codes are two tile products into one tile of sums, which is scaled once.

constexpr int64_t kGroupTiles = 4;
constexpr int64_t kCodeBytes = 256;               // of a tile
constexpr int64_t kUnpacked = kGroupTiles * 512;  // bytes of a group's weights
constexpr int64_t kStepTiles = 2;                 // of a tile product

/// A tile's codes less 8, in quads.
VERBATIM_INLINE void unpack_tile(const uint8_t* codes, int8_t* out) {
  const __m512i eight = _mm512_set1_epi8(8);
  const __m512i mask = _mm512_set1_epi8(15);
  for (int block = 0; block < 4; ++block) {
    const __m512i packed = _mm512_loadu_si512(codes + block * 64);
    const __m512i low = _mm512_and_si512(packed, mask);
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(packed, 4), mask);
    _mm512_store_si512(out + block * 128, _mm512_sub_epi8(low, eight));
    _mm512_store_si512(out + block * 128 + 64, _mm512_sub_epi8(high, eight));
  }
}

/// kRows rows from `row` on, of which `rows` are there, by kPanels panels that are `apart` from each other.
template <int kRows, int kPanels>
class Block {
 public:
  Block(const Int8Rows& a, const IntegerPanels& weights, int64_t row, int64_t rows)
      : a_(a), weights_(weights), row_(row), rows_(rows) {}

  void multiply(int64_t panel, int64_t apart, float* c, int64_t c_stride) {
    __m512 sums[kPanels][kRows];
    for (auto& panel_sums : sums) {
      for (__m512& sum : panel_sums) sum = _mm512_setzero_ps();
    }
    for (int j = 0; j < kPanels; ++j) unpack(panel + j * apart, 0, j);
    // Unpacking, multiplying and scaling are each a group behind the one before, so that none waits.
    for (int64_t g = 0; g < groups_; ++g) {
      const auto each = [&]<int kPanel>() __attribute__((always_inline)) {
        if constexpr (kPanel < kPanels) {
          const int64_t at = panel + kPanel * apart;
          if (g + 1 < groups_) unpack(at, g + 1, kPanel);
          dot<kPanel>(g);
          if (g > 0) add_scaled(at, g - 1, kPanel, sums[kPanel]);
        }
      };
      each.template operator()<0>();
      each.template operator()<1>();
    }
    for (int j = 0; j < kPanels; ++j) {
      const int64_t at = panel + j * apart;
      add_scaled(at, groups_ - 1, j, sums[j]);
      for (int r = 0; r < kRows; ++r) {
        if (r < rows_) _mm512_storeu_ps(c + (row_ + r) * c_stride + at * kPanelWidth, sums[j][r]);
      }
    }
  }

 private:
  VERBATIM_INLINE int64_t tiles_of(int64_t g) const {
    const int64_t left = tiles_ - g * kGroupTiles;
    return left < kGroupTiles ? left : kGroupTiles;
  }

  VERBATIM_INLINE void unpack(int64_t panel, int64_t g, int j) {
    const uint8_t* const codes = weights_.codes + (panel * tiles_ + g * kGroupTiles) * kCodeBytes;
    int8_t* const out = stage_.bytes[g % 2][j];
    const int64_t count = tiles_of(g);
    for (int64_t t = 0; t < count; ++t) {
      generic::prefetch_ahead<kCodeBytes>(codes + t * kCodeBytes, generic::kCodePrefetchBytes);
      unpack_tile(codes + t * kCodeBytes, out + t * 512);
    }
    // A step takes two tiles; zeros make it indifferent what follows the activations.
    if (count % kStepTiles != 0) {
      for (int64_t i = 0; i < 512; i += 64) _mm512_store_si512(out + count * 512 + i, _mm512_setzero_si512());
    }
  }

  template <int kPanel>
  VERBATIM_INLINE void dot(int64_t g) {
    const int8_t* const a = a_.codes + row_ * a_.stride + g * kGroupTiles * kInnerStep;
    const int8_t* const weights = stage_.bytes[g % 2][kPanel];
    tile_zero<kPanel>();
    tile_load<4>(a, a_.stride);
    tile_load<6>(weights, 64);
    tile_dot_int8<kPanel, 4, 6, false>();
    if (tiles_of(g) > kStepTiles) {
      tile_load<5>(a + kStepTiles * kInnerStep, a_.stride);
      tile_load<7>(weights + kStepTiles * 512, 64);
      tile_dot_int8<kPanel, 5, 7, false>();
    }
    tile_store<kPanel>(stage_.dots[g % 2][kPanel], 64);
  }

  /// sums += float(dots) · scales of the columns · scale of the row's group
  VERBATIM_INLINE void add_scaled(int64_t panel, int64_t g, int j, __m512 (&sums)[kRows]) const {
    const uint8_t* const scales = weights_.scales + (panel * groups_ + g) * 2 * kPanelWidth;
    __builtin_prefetch(scales + generic::kScalePrefetchBytes);
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(scales));
    const __m512 column_scales = _mm512_mul_ps(_mm512_cvtph_ps(halves), _mm512_set1_ps(2.0f));
    for (int r = 0; r < kRows; ++r) {
      const int64_t row_group = (row_ + (r < rows_ ? r : 0)) * tiles_ + g * kGroupTiles;
      const __m512i dot = _mm512_load_si512(stage_.dots[g % 2][j] + r * 16);
      const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(dot), column_scales);
      sums[r] = _mm512_add_ps(sums[r], _mm512_mul_ps(scaled, _mm512_set1_ps(a_.scales[row_group])));
    }
  }

  struct alignas(4096) Stage {
    int8_t bytes[2][kPanels][kUnpacked];
    int32_t dots[2][kPanels][kRows * 16];
  };

  Int8Rows a_;
  IntegerPanels weights_;
  int64_t row_;
  int64_t rows_;
  int64_t tiles_ = a_.k / kInnerStep;
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

/// Eight rows leave room for the sums of two panels in registers, sixteen for those of one.
void integer_int4_grouped(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  for (int64_t row = 0; row < a.rows; row += 16) {
    const int64_t rows = a.rows - row < 16 ? a.rows - row : 16;
    configure(static_cast<int>(rows));
    const int64_t paired = rows <= 8 ? weights.panel_count / 2 : 0;
    if (paired > 0) {
      Block<8, 2> block(a, weights, row, rows);
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
