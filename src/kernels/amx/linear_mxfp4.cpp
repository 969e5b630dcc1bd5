#include <cstring>

#include "kernels/amx/products.h"
#include "kernels/amx/tiles.h"
#include "kernels/generic/mxfp4.h"

namespace verbatim::amx {

namespace {

/// One panel's group of 32 as signed bytes, twice the E2M1 value, in quads: the weight tile of an int8
/// product.
VERBATIM_INLINE void unpack_group(const uint8_t* codes, int8_t* tile) {
  const __m512i table =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12));
  const __m512i mask = _mm512_set1_epi8(15);
  for (int block = 0; block < 4; ++block) {
    const __m512i packed = _mm512_loadu_si512(codes + block * 64);
    const __m512i low = _mm512_shuffle_epi8(table, _mm512_and_si512(packed, mask));
    const __m512i high = _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(packed, 4), mask));
    _mm512_store_si512(tile + block * 128, low);
    _mm512_store_si512(tile + block * 128 + 64, high);
  }
}

/// c[r] += float(dots[r]) · (scale of the row's group · scales of the panel's columns)
VERBATIM_INLINE void add_scaled(const int32_t* dots, const float* row_scales, int64_t row_scale_stride,
                                __m512 column_scales, int64_t rows, float* c, int64_t c_stride) {
  for (int64_t r = 0; r < rows; ++r) {
    const __m512 scale = _mm512_mul_ps(_mm512_set1_ps(row_scales[r * row_scale_stride]), column_scales);
    const __m512 dot = _mm512_cvtepi32_ps(_mm512_load_si512(dots + r * 16));
    const __m512 sum = _mm512_add_ps(_mm512_loadu_ps(c + r * c_stride), _mm512_mul_ps(dot, scale));
    _mm512_storeu_ps(c + r * c_stride, sum);
  }
}

}  // namespace

void panels_mxfp4_w4a8(const Int8Rows& a, const Mxfp4Panels& weights, float* c, int64_t c_stride) {
  const int64_t groups = a.k / kInnerStep;
  alignas(64) int8_t tile[512];
  alignas(64) int32_t dots[256];
  for (int64_t row = 0; row < a.rows; row += 16) {
    const int64_t rows = a.rows - row < 16 ? a.rows - row : 16;
    TileConfig config;
    config.set(0, static_cast<int>(rows), 64);  // sums
    config.set(1, static_cast<int>(rows), 32);  // activations: 32 of a group
    config.set(2, 8, 64);                       // weights: 8 quads × 16 columns
    config.load();
    for (int64_t panel = 0; panel < weights.panel_count; ++panel) {
      float* const out = c + row * c_stride + panel * kPanelWidth;
      for (int64_t r = 0; r < rows; ++r) std::memset(out + r * c_stride, 0, kPanelWidth * sizeof(float));
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t index = panel * groups + g;
        unpack_group(weights.codes + index * generic::kMxfp4GroupBytes, tile);
        _tile_zero(0);
        _tile_loadd(1, a.codes + row * a.k + g * kInnerStep, a.k);
        _tile_loadd(2, tile, 64);
        _tile_dpbssd(0, 1, 2);
        _tile_stored(0, dots, 64);
        const __m128i exponents =
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights.scales + index * 16));
        const __m512 scales = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu8_epi32(exponents), 23));
        add_scaled(dots, a.scales + row * groups + g, groups, scales, rows, out, c_stride);
      }
    }
  }
  _tile_release();
}

}  // namespace verbatim::amx
