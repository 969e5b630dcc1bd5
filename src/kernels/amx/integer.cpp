#include "kernels/generic/integer.h"

#include "kernels/amx/products.h"
#include "kernels/amx/tiles.h"
#include "kernels/generic/tiles.h"

namespace verbatim::amx {

namespace {

/// The bytes of an int8 product for one tile of codes, in quads: symmetric codes less 8, asymmetric
/// ones as they are.
template <int kKind>
VERBATIM_INLINE void unpack_bytes(const uint8_t* codes, uint8_t* out) {
  const __m512i less_eight =
      _mm512_broadcast_i32x4(_mm_setr_epi8(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7));
  const __m512i mask = _mm512_set1_epi8(15);
  for (int block = 0; block < 4; ++block) {
    const __m512i packed = _mm512_loadu_si512(codes + block * 64);
    __m512i low = _mm512_and_si512(packed, mask);
    __m512i high = _mm512_and_si512(_mm512_srli_epi16(packed, 4), mask);
    if constexpr (kKind != kIntegerInt4Asymmetric) {
      low = _mm512_shuffle_epi8(less_eight, low);
      high = _mm512_shuffle_epi8(less_eight, high);
    }
    _mm512_store_si512(out + block * 128, low);
    _mm512_store_si512(out + block * 128 + 64, high);
  }
}

VERBATIM_INLINE __m512 scales_of(const uint8_t* scales) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(scales));
  return _mm512_mul_ps(_mm512_cvtph_ps(halves), _mm512_set1_ps(2.0f));
}

/// kRows rows from `row` on, of which `rows` are there, by kPanels panels that are `apart` from each other.
template <int kKind, int kRows, int kPanels>
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
    // Unpacking, multiplying and scaling are each a tile behind the one before, so that none waits.
    for (int64_t t = 0; t < tiles_; ++t) {
      const auto each = [&]<int kPanel>() __attribute__((always_inline)) {
        if constexpr (kPanel < kPanels) {
          const int64_t at = panel + kPanel * apart;
          if (t + 1 < tiles_) unpack(at, t + 1, kPanel);
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
  static constexpr int64_t kLag = 2;   // tiles that the scaling stays behind
  static constexpr int64_t kDots = 4;  // tiles whose dot products are kept
  static constexpr int64_t kBytes = generic::integer_code_bytes(kKind);
  static constexpr int64_t kScaleTiles = generic::integer_scale_tiles(kKind);
  static constexpr int64_t kScaleBytes = generic::integer_scale_bytes(kKind);

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

  Int8Rows a_;
  IntegerPanels weights_;
  int64_t row_;
  int64_t rows_;
  int64_t tiles_ = a_.k / kInnerStep;
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

/// Eight rows leave room for the sums of two panels in registers, sixteen for those of one.
template <int kKind>
void product(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  for (int64_t row = 0; row < a.rows; row += 16) {
    const int64_t rows = a.rows - row < 16 ? a.rows - row : 16;
    configure(static_cast<int>(rows));
    const int64_t paired = rows <= 8 ? weights.panel_count / 2 : 0;
    if (paired > 0) {
      Block<kKind, 8, 2> block(a, weights, row, rows);
      for (int64_t panel = 0; panel < paired; ++panel) block.multiply(panel, paired, c, c_stride);
    }
    if (2 * paired == weights.panel_count) continue;
    Block<kKind, 16, 1> block(a, weights, row, rows);
    for (int64_t panel = 2 * paired; panel < weights.panel_count; ++panel) {
      block.multiply(panel, 0, c, c_stride);
    }
  }
  _tile_release();
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
