#include "kernels/amx/bf16_blocks.h"
#include "kernels/amx/products.h"

namespace verbatim::amx {

namespace {

using Product = PanelProduct<BFloat16, BFloat16>;

/// The distance, in bytes, at which weights are prefetched before their use, in each of the panels that are
/// read side by side.
constexpr int64_t kPrefetchElements = 2048;

/// Multiplies up to 16 rows with kPanels panels. With kAhead it prefetches p.ahead, otherwise these panels
/// further on.
template <int kPanels, bool kAhead>
void wide_block(const Product& p, int64_t row, int64_t panel) {
  float* const c = p.c + row * p.c_stride + panel * kPanelWidth;
  const BFloat16* const a = p.a + row * p.a_stride;
  const BFloat16* const weights = p.panels + panel * p.panel_stride;
  begin_wide<kPanels>(c, p.c_stride * 4, p.accumulate);
  for (int64_t k = 0; k < p.k; k += kInnerStep) {
    const BFloat16* const w = weights + k * kPanelWidth;
    if constexpr (kAhead) {
      constexpr int64_t kBytes = kPanelWidth * int64_t{sizeof(BFloat16)};
      p.ahead.fetch_with((panel * p.k + k * kPanels) * kBytes, kInnerStep * kPanels * kBytes);
    } else {
      for (int j = 0; j < kPanels; ++j) prefetch_lines(w + j * p.panel_stride + kPrefetchElements, 16);
    }
    step_wide<kPanels>(a + k, p.a_stride * 2, w, p.panel_stride);
  }
  end_wide<kPanels>(c, p.c_stride * 4);
}

template <int kTiles>
void tall_blocks(const Product& p, int64_t row) {
  const BFloat16* const a = p.a + row * p.a_stride;
  for (int64_t panel = 0; panel < p.panel_count; ++panel) {
    float* const c = p.c + row * p.c_stride + panel * kPanelWidth;
    const BFloat16* const weights = p.panels + panel * p.panel_stride;
    begin_tall<kTiles>(c, p.c_stride, p.accumulate);
    for (int64_t k = 0; k < p.k; k += kInnerStep) {
      prefetch_lines(weights + k * kPanelWidth + 4 * kPrefetchElements, 16);
      step_tall<kTiles>(a + k, p.a_stride, weights + k * kPanelWidth);
    }
    end_tall<kTiles>(c, p.c_stride);
  }
}

/// Multiplies 17 to 32 rows with two panels.
void pair_block(const Product& p, int64_t row, int64_t panel) {
  float* const c = p.c + row * p.c_stride + panel * kPanelWidth;
  const BFloat16* const a = p.a + row * p.a_stride;
  const BFloat16* const weights = p.panels + panel * p.panel_stride;
  begin_pair(c, p.c_stride, p.accumulate);
  for (int64_t k = 0; k < p.k; k += kInnerStep) {
    const BFloat16* const w = weights + k * kPanelWidth;
    prefetch_lines(w + kPrefetchElements, 16);
    prefetch_lines(w + p.panel_stride + kPrefetchElements, 16);
    step_pair(a + k, p.a_stride * 2, w, p.panel_stride);
  }
  end_pair(c, p.c_stride);
}

template <bool kAhead>
void wide_blocks(const Product& p, int64_t row, int64_t first) {
  int64_t panel = first;
  for (; panel + 2 <= p.panel_count; panel += 2) wide_block<2, kAhead>(p, row, panel);
  for (; panel < p.panel_count; ++panel) wide_block<1, kAhead>(p, row, panel);
}

/// Multiplies up to 16 rows with the panels from `first` on.
void wide(const Product& p, int64_t row, int64_t rows, int64_t first) {
  configure_wide(static_cast<int>(rows));
  if (p.ahead.from != nullptr) {
    wide_blocks<true>(p, row, first);
  } else {
    wide_blocks<false>(p, row, first);
  }
}

/// Multiplies up to 80 rows. Weights are read once, except for an odd last panel.
void few_rows(const Product& p, int64_t row, int64_t count) {
  const RowTiles rows = row_tiles(count);
  switch (rows.tiles) {
    case 1:
      wide(p, row, count, 0);
      return;
    case 2: {
      configure_pair(rows.last_rows);
      const int64_t paired = p.panel_count / 2 * 2;
      for (int64_t panel = 0; panel < paired; panel += 2) pair_block(p, row, panel);
      if (paired < p.panel_count) {
        wide(p, row, kTileRows, paired);
        wide(p, row + kTileRows, count - kTileRows, paired);
      }
      return;
    }
    case 3:
      configure_tall(rows);
      tall_blocks<3>(p, row);
      return;
    case 4:
      configure_tall(rows);
      tall_blocks<4>(p, row);
      return;
    default:
      configure_tall(rows);
      tall_blocks<5>(p, row);
      return;
  }
}

}  // namespace

void panels_bf16(const Product& p) {
  constexpr int64_t kFewRows = kMostTallTiles * kTileRows;
  for (int64_t row = 0; row < p.rows; row += kFewRows) {
    few_rows(p, row, p.rows - row < kFewRows ? p.rows - row : kFewRows);
  }
  _tile_release();
}

}  // namespace verbatim::amx
