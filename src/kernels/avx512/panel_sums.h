#pragma once

#include "kernels/avx512/words.h"
#include "kernels/generic/scaled.h"

namespace verbatim::avx512 {

using Words = U16x32;

/// Rows of activations, as they lie in a matrix. Rows beyond the last one are the last once more, and their
/// results are not stored.
template <int kRows>
struct RowBlock {
  const BFloat16* from[kRows];
  int64_t first;
  int64_t count;

  RowBlock(const TileProduct& p, int64_t row)
      : first(row), count(p.rows - row < kRows ? p.rows - row : kRows) {
    for (int64_t r = 0; r < kRows; ++r) from[r] = p.a + (row + (r < count ? r : count - 1)) * p.a_stride;
  }
  VERBATIM_INLINE const BFloat16* at(int64_t r, int64_t tile) const { return from[r] + tile * kInnerStep; }
};

/// The number of rows in a tile of activations.
constexpr int64_t kRowTile = 16;

/// Rows of activations in tiles (TileProduct::tiled). Rows beyond the last one are zeros, and their results
/// are not stored.
template <int kRows>
struct TiledRowBlock {
  const BFloat16* from;  ///< the first row's first input of the piece
  int64_t piece;         ///< the first tile of the piece
  int64_t first;
  int64_t count;

  TiledRowBlock(const TileProduct& p, int64_t row, int64_t first_tile, int64_t tiles)
      : piece(first_tile), first(row), count(p.rows - row < kRows ? p.rows - row : kRows) {
    const int64_t row_tiles = (p.rows + kRowTile - 1) / kRowTile;
    const int64_t before = first_tile * row_tiles + row / kRowTile * tiles;
    from = p.tiled + (before * kRowTile + row % kRowTile) * kInnerStep;
  }
  VERBATIM_INLINE const BFloat16* at(int64_t r, int64_t tile) const {
    return from + ((tile - piece) * kRowTile + r) * kInnerStep;
  }
};

/// The sums of a block of rows with a panel. The order of the operations is that of
/// DotProductAdding for unpacked panels, pair after pair, and of generic::scaled_product() after it.
template <typename Scaling, int kRows>
struct PanelSums {
  static constexpr bool kScaled = Scaling::kGroupTiles != 0;
  __m512 sums[kRows];
  __m512 products[kScaled ? kRows : 1];

  VERBATIM_INLINE __m512& open(int r) {
    if constexpr (kScaled) return products[r];
    return sums[r];
  }
  VERBATIM_INLINE void clear() {
    for (__m512& sum : sums) sum = _mm512_setzero_ps();
  }
  VERBATIM_INLINE void load(const float* c, int64_t stride) {
    for (int r = 0; r < kRows; ++r) sums[r] = _mm512_loadu_ps(c + r * stride);
  }
  VERBATIM_INLINE void store(int64_t count, float* c, int64_t stride) const {
    for (int r = 0; r < kRows; ++r) {
      if (r < count) _mm512_storeu_ps(c + r * stride, sums[r]);
    }
  }

  VERBATIM_INLINE void before(int64_t tile) {
    if constexpr (kScaled) {
      if (Scaling::kGroupTiles > 1 && tile % Scaling::kGroupTiles != 0) return;
      for (__m512& product : products) product = _mm512_setzero_ps();
    }
  }
  /// Adds the product with a pair of inputs of a tile.
  template <typename Rows>
  VERBATIM_INLINE void add(Words words, const Rows& rows, int64_t tile, int64_t input) {
#pragma GCC unroll 16  // or the sums of many rows leave the registers
    for (int r = 0; r < kRows; ++r) {
      const __m512i pair = pair_of(rows, r, tile, input);
      open(r) = _mm512_dpbf16_ps(open(r), reinterpret_cast<__m512bh>(words.lanes),
                                 reinterpret_cast<__m512bh>(pair));
    }
  }
  /// A pair of a row's inputs for all lanes.
  template <typename Rows>
  VERBATIM_INLINE static __m512i pair_of(const Rows& rows, int64_t row, int64_t tile, int64_t input) {
    int32_t pair;
    __builtin_memcpy(&pair, rows.at(row, tile) + input, sizeof pair);
    return _mm512_set1_epi32(pair);
  }
  /// Scales the products of a group behind its last tile.
  template <typename Rows>
  VERBATIM_INLINE void after(const ScaledProduct& p, int64_t panel, int64_t tile, const Rows& rows) {
    if constexpr (kScaled) {
      constexpr int64_t kTiles = Scaling::kGroupTiles;
      const int64_t tiles = p.tiles.weights.tiles;
      if (kTiles > 1 && tile % kTiles != kTiles - 1 && tile + 1 != tiles) return;
      const int64_t groups = (tiles + kTiles - 1) / kTiles;
      const int64_t group = tile / kTiles;
      const int64_t index = (panel * groups + group) * kPanelWidth;
      const F32x16 scale = F32x16::load(reinterpret_cast<const Float16*>(p.tiles.weights.scales) + index);
      F32x16 zero = F32x16::set(0.0f);
      if constexpr (Scaling::kZeros) zero = F32x16::load(p.zeros + index);
      for (int r = 0; r < kRows; ++r) {
        const int64_t row = rows.first + (r < rows.count ? r : rows.count - 1);
        const F32x16 scaled = generic::scaled_product<Scaling::kZeros>(F32x16{products[r]}, scale, zero,
                                                                       p.group_sums, row * groups + group);
        sums[r] = group == 0 ? scaled.lanes : (F32x16{sums[r]} + scaled).lanes;
      }
    }
  }
};

}  // namespace verbatim::avx512
