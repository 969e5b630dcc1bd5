#pragma once

#include "base/float16.h"
#include "kernels/amx/tiles.h"
#include "kernels/kernel_table.h"

namespace verbatim::amx {

// Blocks of products in BF16. An output is a chain of tile products over k in order in every kind of block,
// and the hardware computes each row of a tile on its own, so the choice of block never changes a bit.
//
// Register use: `wide` blocks have sums in 0 and 1, activations in 4, weights in 5 and 6; `pair` blocks sums
// in 0..3, activations in 4 and 5, weights in 6 and 7; `tall` blocks sums in 0..4, weights in 5, activations
// in 6, those of the last sixteen rows, which may be fewer, in 7. The fewer the better: what a core can
// rename seems to be shared by its threads (docs/performance.md). Many rows (many_rows.cpp) use a wide
// block's registers, but 5 for the weights of both panels.

inline constexpr int64_t kTileRows = 16;
inline constexpr int64_t kTileElements = 512;
inline constexpr int64_t kMostTallTiles = 5;

VERBATIM_INLINE void prefetch_lines(const void* from, int lines) {
  for (int i = 0; i < lines; ++i) _mm_prefetch(static_cast<const char*>(from) + i * 64, _MM_HINT_T0);
}

/// The rows of a block of up to `tiles` row tiles, of which all but the last are full.
struct RowTiles {
  int64_t tiles;
  int last_rows;
};
VERBATIM_INLINE RowTiles row_tiles(int64_t rows) {
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  return {tiles, static_cast<int>(rows - (tiles - 1) * kTileRows)};
}

VERBATIM_INLINE void configure_wide(int rows) {
  TileConfig config;
  for (int tile = 0; tile < 5; ++tile) config.set(tile, rows, 64);
  for (int tile = 5; tile < 8; ++tile) config.set(tile, 16, 64);
  config.load();
}
VERBATIM_INLINE void configure_pair(int last_rows) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) config.set(tile, 16, 64);
  config.set(2, last_rows, 64);
  config.set(3, last_rows, 64);
  config.set(5, last_rows, 64);
  config.load();
}
VERBATIM_INLINE void configure_tall(RowTiles rows) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) config.set(tile, 16, 64);
  config.set(static_cast<int>(rows.tiles) - 1, rows.last_rows, 64);
  config.set(7, rows.last_rows, 64);
  config.load();
}

/// Copies up to sixteen rows into the order of tiles, [tile][rows][32]: rows far apart would each take a
/// page, and sets of the cache, of their own.
VERBATIM_INLINE BFloat16* gather_rows(const TileProduct& p) {
  BFloat16* out = reinterpret_cast<BFloat16*>(p.scratch);
  for (int64_t t = 0; t < p.weights.tiles; ++t) {
    for (int64_t r = 0; r < p.rows; ++r, out += kInnerStep) {
      _mm512_storeu_si512(out, _mm512_loadu_si512(p.a + r * p.a_stride + t * kInnerStep));
    }
  }
  return reinterpret_cast<BFloat16*>(p.scratch);
}

/// Loads the sums that a block starts from: the contents of c, or zeros.
template <int kTile>
VERBATIM_INLINE void begin(const float* c, int64_t c_bytes, bool accumulate) {
  if (accumulate) {
    tile_load<kTile>(c, c_bytes);
  } else {
    tile_zero<kTile>();
  }
}

/// A step of a wide block: one tile of activations times a tile of each of kPanels panels, one or two.
template <int kPanels>
VERBATIM_INLINE void step_wide(const BFloat16* a, int64_t a_bytes, const BFloat16* w, int64_t panel_stride) {
  tile_load<4>(a, a_bytes);
  tile_load<5>(w, 64);
  tile_dot_bf16<0, 4, 5>();
  if constexpr (kPanels > 1) {
    tile_load<6>(w + panel_stride, 64);
    tile_dot_bf16<1, 4, 6>();
  }
}
template <int kPanels>
VERBATIM_INLINE void begin_wide(const float* c, int64_t c_bytes, bool accumulate) {
  begin<0>(c, c_bytes, accumulate);
  if constexpr (kPanels > 1) begin<1>(c + 16, c_bytes, accumulate);
}
template <int kPanels>
VERBATIM_INLINE void end_wide(float* c, int64_t c_bytes) {
  tile_store<0>(c, c_bytes);
  if constexpr (kPanels > 1) tile_store<1>(c + 16, c_bytes);
}

/// A pair block: two row tiles times two panels.
VERBATIM_INLINE void step_pair(const BFloat16* a, int64_t a_bytes, const BFloat16* w, int64_t panel_stride) {
  tile_load<4>(a, a_bytes);
  tile_load<6>(w, 64);
  tile_load<5>(reinterpret_cast<const char*>(a) + kTileRows * a_bytes, a_bytes);
  tile_load<7>(w + panel_stride, 64);
  tile_dot_bf16<0, 4, 6>();
  tile_dot_bf16<2, 5, 6>();
  tile_dot_bf16<1, 4, 7>();
  tile_dot_bf16<3, 5, 7>();
}
VERBATIM_INLINE void begin_pair(const float* c, int64_t c_stride, bool accumulate) {
  begin<0>(c, c_stride * 4, accumulate);
  begin<1>(c + 16, c_stride * 4, accumulate);
  begin<2>(c + kTileRows * c_stride, c_stride * 4, accumulate);
  begin<3>(c + kTileRows * c_stride + 16, c_stride * 4, accumulate);
}
VERBATIM_INLINE void end_pair(float* c, int64_t c_stride) {
  tile_store<0>(c, c_stride * 4);
  tile_store<1>(c + 16, c_stride * 4);
  tile_store<2>(c + kTileRows * c_stride, c_stride * 4);
  tile_store<3>(c + kTileRows * c_stride + 16, c_stride * 4);
}

/// A tall block: kTiles row tiles times one panel.
template <int kTiles>
VERBATIM_INLINE void step_tall(const BFloat16* a, int64_t a_stride, const BFloat16* w) {
  tile_load<5>(w, 64);
  const auto row_tile = [&]<int kTile>() __attribute__((always_inline)) {
    if constexpr (kTile < kTiles) {
      constexpr int kA = kTile + 1 == kTiles ? 7 : 6;
      tile_load<kA>(a + kTile * kTileRows * a_stride, a_stride * 2);
      tile_dot_bf16<kTile, kA, 5>();
    }
  };
  row_tile.template operator()<0>();
  row_tile.template operator()<1>();
  row_tile.template operator()<2>();
  row_tile.template operator()<3>();
  row_tile.template operator()<4>();
}
template <int kTiles>
VERBATIM_INLINE void begin_tall(const float* c, int64_t c_stride, bool accumulate) {
  begin<0>(c, c_stride * 4, accumulate);
  if constexpr (kTiles > 1) begin<1>(c + 16 * c_stride, c_stride * 4, accumulate);
  if constexpr (kTiles > 2) begin<2>(c + 32 * c_stride, c_stride * 4, accumulate);
  if constexpr (kTiles > 3) begin<3>(c + 48 * c_stride, c_stride * 4, accumulate);
  if constexpr (kTiles > 4) begin<4>(c + 64 * c_stride, c_stride * 4, accumulate);
}
template <int kTiles>
VERBATIM_INLINE void end_tall(float* c, int64_t c_stride) {
  tile_store<0>(c, c_stride * 4);
  if constexpr (kTiles > 1) tile_store<1>(c + 16 * c_stride, c_stride * 4);
  if constexpr (kTiles > 2) tile_store<2>(c + 32 * c_stride, c_stride * 4);
  if constexpr (kTiles > 3) tile_store<3>(c + 48 * c_stride, c_stride * 4);
  if constexpr (kTiles > 4) tile_store<4>(c + 64 * c_stride, c_stride * 4);
}

}  // namespace verbatim::amx
