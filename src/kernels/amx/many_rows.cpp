#include <cstring>

#include "kernels/amx/bf16_blocks.h"
#include "kernels/amx/products.h"

namespace verbatim::amx {

namespace {

using Product = PanelProduct<BFloat16, BFloat16>;

// Blocks for the caches. The activations of a row block and a block of k (1 MB) and the sums of a row block
// and a group of panels (256 KB) stay in the second-level cache while the panels of the group pass by; of a
// pair of panels, a piece of k (32 KB) stays in the first-level cache while the rows pass by. Putting sums
// down and taking them up again leaves the order of additions as it is.
constexpr int64_t kRowBlock = 256;
constexpr int64_t kGroup = kManyRowsPanels;
constexpr int64_t kBlock = 2048;
constexpr int64_t kPiece = 1024;
constexpr int64_t kWidth = kGroup * kPanelWidth + kPanelWidth;  // rows begin in different sets
static_assert(kRowBlock * kWidth == kManyRowsScratch);

/// The weights of the next piece, which are fetched while the rows pass by this one, a few lines a step.
struct NextPiece {
  const BFloat16* weights[2];
  int lines_per_step;

  VERBATIM_INLINE void fetch() {
    for (const BFloat16*& panel : weights) {
      for (int line = 0; line < lines_per_step; ++line, panel += kInnerStep) {
        _mm_prefetch(reinterpret_cast<const char*>(panel), _MM_HINT_T1);
      }
    }
  }
};

/// 32 rows by two panels over a piece of k.
VERBATIM_INLINE void pair_block(const BFloat16* a, int64_t a_bytes, const BFloat16* w, int64_t panel_stride,
                                int64_t k, float* sums, bool accumulate, NextPiece& next) {
  begin_pair(sums, kWidth, accumulate);
  for (int64_t i = 0; i < k; i += kInnerStep) {
    next.fetch();
    step_pair(a + i, a_bytes, w + i * kPanelWidth, panel_stride);
  }
  end_pair(sums, kWidth);
}

/// A row block by a group of panels.
void group_block(const Product& p, int64_t row, int64_t rows, int64_t panel, int64_t count, float* sums) {
  const int64_t pairs = rows / (2 * kTileRows);
  for (int64_t block = 0; block < p.k; block += kBlock) {
    const int64_t block_end = block + kBlock < p.k ? block + kBlock : p.k;
    for (int64_t j = 0; j < count; j += 2) {
      const BFloat16* const weights = p.panels + (panel + j) * p.panel_stride;
      // The last of an odd number is multiplied twice over.
      const int64_t panel_stride = j + 1 < count ? p.panel_stride : 0;
      for (int64_t k = block; k < block_end; k += kPiece) {
        const int64_t piece = k + kPiece < block_end ? kPiece : block_end - k;
        const BFloat16* const here = weights + k * kPanelWidth;
        const BFloat16* const ahead = k + piece < block_end
                                          ? here + piece * kPanelWidth
                                          : weights + 2 * p.panel_stride + block * kPanelWidth;
        NextPiece next{{ahead, ahead + panel_stride}, static_cast<int>((16 + pairs - 1) / pairs)};
        for (int64_t r = 0; r < rows; r += 2 * kTileRows) {
          pair_block(p.a + (row + r) * p.a_stride + k, p.a_stride * 2, here, panel_stride, piece,
                     sums + r * kWidth + j * kPanelWidth, k > 0, next);
        }
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(p.c + (row + r) * p.c_stride + panel * kPanelWidth, sums + r * kWidth,
                static_cast<size_t>(count * kPanelWidth) * sizeof *sums);
  }
}

}  // namespace

void many_rows_bf16(const Product& p, float* scratch) {
  constexpr int64_t kFewRows = kMostTallTiles * kTileRows;
  int64_t row = 0;
  while (p.rows - row > kFewRows) {
    const int64_t pairs = (p.rows - row) / (2 * kTileRows) * (2 * kTileRows);
    const int64_t rows = pairs < kRowBlock ? pairs : kRowBlock;
    configure_pair(16);
    for (int64_t panel = 0; panel < p.panel_count; panel += kGroup) {
      const int64_t left = p.panel_count - panel;
      group_block(p, row, rows, panel, left < kGroup ? left : kGroup, scratch);
    }
    row += rows;
  }
  if (row < p.rows) {
    Product rest = p;
    rest.a += row * p.a_stride;
    rest.c += row * p.c_stride;
    rest.rows -= row;
    panels_bf16(rest);
  }
  _tile_release();
}

}  // namespace verbatim::amx
