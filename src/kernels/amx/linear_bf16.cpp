#include "kernels/amx/products.h"
#include "kernels/amx/tiles.h"

namespace verbatim::amx {

namespace {

constexpr int64_t kTileElements = 512;    // 16 pairs of k × 16 columns × 2
constexpr int64_t kPrefetchBytes = 4096;  // ahead, in each of the panels that are read side by side

VERBATIM_INLINE void prefetch_tile(const BFloat16* tile) {
  const char* const ahead = reinterpret_cast<const char*>(tile) + kPrefetchBytes;
  for (int line = 0; line < 16; ++line) _mm_prefetch(ahead + line * 64, _MM_HINT_T0);
}

/// Up to 16 rows by four panels: tiles 0..3 hold the sums, 4 the activations, 5..7 weights.
void block_1x4(const PanelProduct<BFloat16, BFloat16>& p, int64_t row, int64_t panel) {
  float* const c = p.c + row * p.c_stride + panel * kPanelWidth;
  const int64_t c_bytes = p.c_stride * 4;
  if (p.accumulate) {
    _tile_loadd(0, c, c_bytes);
    _tile_loadd(1, c + 16, c_bytes);
    _tile_loadd(2, c + 32, c_bytes);
    _tile_loadd(3, c + 48, c_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const BFloat16* const a = p.a + row * p.a_stride;
  const BFloat16* const weights = p.panels + panel * p.panel_stride;
  for (int64_t k = 0; k < p.k; k += kInnerStep) {
    const BFloat16* const w = weights + k * kPanelWidth;
    _tile_loadd(4, a + k, p.a_stride * 2);
    prefetch_tile(w);
    _tile_loadd(5, w, 64);
    _tile_dpbf16ps(0, 4, 5);
    prefetch_tile(w + p.panel_stride);
    _tile_loadd(6, w + p.panel_stride, 64);
    _tile_dpbf16ps(1, 4, 6);
    prefetch_tile(w + 2 * p.panel_stride);
    _tile_loadd(7, w + 2 * p.panel_stride, 64);
    _tile_dpbf16ps(2, 4, 7);
    prefetch_tile(w + 3 * p.panel_stride);
    _tile_loadd(5, w + 3 * p.panel_stride, 64);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_stored(0, c, c_bytes);
  _tile_stored(1, c + 16, c_bytes);
  _tile_stored(2, c + 32, c_bytes);
  _tile_stored(3, c + 48, c_bytes);
}

/// Up to 16 rows by one panel.
void block_1x1(const PanelProduct<BFloat16, BFloat16>& p, int64_t row, int64_t panel) {
  float* const c = p.c + row * p.c_stride + panel * kPanelWidth;
  if (p.accumulate) {
    _tile_loadd(0, c, p.c_stride * 4);
  } else {
    _tile_zero(0);
  }
  const BFloat16* const a = p.a + row * p.a_stride;
  const BFloat16* const weights = p.panels + panel * p.panel_stride;
  for (int64_t k = 0; k < p.k; k += kInnerStep) {
    _tile_loadd(4, a + k, p.a_stride * 2);
    prefetch_tile(weights + k * kPanelWidth);
    _tile_loadd(5, weights + k * kPanelWidth, 64);
    _tile_dpbf16ps(0, 4, 5);
  }
  _tile_stored(0, c, p.c_stride * 4);
}

/// 32 rows by two panels: tiles 0..3 hold the sums, 4 and 5 the activations, 6 and 7 weights.
void block_2x2(const PanelProduct<BFloat16, BFloat16>& p, int64_t row, int64_t panel) {
  float* const upper = p.c + row * p.c_stride + panel * kPanelWidth;
  float* const lower = upper + 16 * p.c_stride;
  const int64_t c_bytes = p.c_stride * 4;
  if (p.accumulate) {
    _tile_loadd(0, upper, c_bytes);
    _tile_loadd(1, upper + 16, c_bytes);
    _tile_loadd(2, lower, c_bytes);
    _tile_loadd(3, lower + 16, c_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const BFloat16* const a = p.a + row * p.a_stride;
  const BFloat16* const weights = p.panels + panel * p.panel_stride;
  for (int64_t k = 0; k < p.k; k += kInnerStep) {
    _tile_loadd(4, a + k, p.a_stride * 2);
    _tile_loadd(5, a + 16 * p.a_stride + k, p.a_stride * 2);
    _tile_loadd(6, weights + k * kPanelWidth, 64);
    _tile_loadd(7, weights + p.panel_stride + k * kPanelWidth, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, upper, c_bytes);
  _tile_stored(1, upper + 16, c_bytes);
  _tile_stored(2, lower, c_bytes);
  _tile_stored(3, lower + 16, c_bytes);
}

/// All tiles hold `rows` rows of activations or sums, but those of the weights, which are always full.
TileConfig config_for_rows(int rows, int first_weight_tile) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) config.set(tile, tile < first_weight_tile ? rows : 16, 64);
  return config;
}

}  // namespace

static_assert(kTileElements == kInnerStep * kPanelWidth);

// An output is a chain of tile products over k in order whatever the block, and the hardware computes each
// row of a tile on its own, so the blocks below are free to choose.
void panels_bf16(const PanelProduct<BFloat16, BFloat16>& p) {
  const int64_t paired_rows = p.rows / 32 * 32;
  const int64_t paired_panels = p.panel_count / 2 * 2;
  if (paired_rows > 0 && paired_panels > 0) {
    config_for_rows(16, 6).load();
    for (int64_t panel = 0; panel < paired_panels; panel += 2) {
      for (int64_t row = 0; row < paired_rows; row += 32) block_2x2(p, row, panel);
    }
  }
  const auto narrow = [&](int64_t first_row, int64_t end_row, int64_t first_panel) {
    for (int64_t row = first_row; row < end_row; row += 16) {
      const int64_t rows = end_row - row < 16 ? end_row - row : 16;
      config_for_rows(static_cast<int>(rows), 5).load();
      int64_t panel = first_panel;
      for (; panel + 4 <= p.panel_count; panel += 4) block_1x4(p, row, panel);
      for (; panel < p.panel_count; ++panel) block_1x1(p, row, panel);
    }
  };
  narrow(0, paired_rows, paired_panels);
  narrow(paired_rows, p.rows, 0);
  _tile_release();
}

}  // namespace verbatim::amx
