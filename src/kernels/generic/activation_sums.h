#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// The number of tiles whose sums of activations are gathered at a time.
inline constexpr int kTilesOfSums = 64;

// `Dot`, the instruction set's part of a product (generic/integer_dots.h), makes each folder's functions its
// own. The gathering ones are not inlined: beside them, compilers keep fewer of a product's sums in
// registers.

/// Sums of int8 activations over groups of kTiles tiles, times kFactor. A product with weights that have an
/// offset adds them, as its first or its last term.
template <typename Dot, int kRows, int kTiles, int kFactor>
struct SumsOfGroups {
  static_assert(kTilesOfSums % kTiles == 0);
  int32_t sums[kRows][kTilesOfSums / kTiles];

  /// Gathers the sums of up to kTilesOfSums tiles from `tile` on, a multiple of that number, for kRows rows
  /// from `row` on.
  [[gnu::noinline]] void gather(const Int8Rows& a, int64_t row, int64_t tile) {
    const int64_t tiles = a.k / kInnerStep;
    const int64_t count = tiles - tile < kTilesOfSums ? tiles - tile : kTilesOfSums;
    for (int r = 0; r < kRows; ++r) {
      const int32_t* const from = a.sums + (row + r) * tiles + tile;
      const int64_t whole = count / kTiles;
      for (int64_t group = 0; group < whole; ++group) {
        int32_t sum = from[group * kTiles];
        for (int i = 1; i < kTiles; ++i) sum += from[group * kTiles + i];
        sums[r][group] = kFactor * sum;
      }
      if (whole * kTiles < count) {
        int32_t sum = 0;
        for (int64_t i = whole * kTiles; i < count; ++i) sum += from[i];
        sums[r][whole] = kFactor * sum;
      }
    }
  }

  /// The sum of a row's group that begins with the tile.
  VERBATIM_INLINE int32_t group(int row, int64_t tile) const {
    return sums[row][static_cast<uint64_t>(tile) % kTilesOfSums / kTiles];
  }
};

/// Sums of groups of one tile are those of the activations themselves, which need no gathering.
template <typename Dot, int kRows, int kFactor>
struct SumsOfGroups<Dot, kRows, 1, kFactor> {
  const int32_t* sums = nullptr;
  int64_t tiles = 0;

  VERBATIM_INLINE void gather(const Int8Rows& a, int64_t row, int64_t) {
    tiles = a.k / kInnerStep;
    sums = a.sums + row * tiles;
  }
  VERBATIM_INLINE int32_t group(int row, int64_t tile) const { return kFactor * sums[row * tiles + tile]; }
};

/// Where weights have no offset there is nothing to add.
template <typename Dot, int kRows, int kTiles>
requires(kTiles > 1) struct SumsOfGroups<Dot, kRows, kTiles, 0> {
  VERBATIM_INLINE void gather(const Int8Rows&, int64_t, int64_t) {}
  VERBATIM_INLINE int32_t group(int, int64_t) const { return 0; }
};

/// Sums of int8 activations over tiles, side by side as words for dot products of pairs.
template <typename Dot, int kRows>
struct SumsOfTiles {
  static_assert(kInnerStep * 128 <= 32767);
  int16_t sums[kRows][kTilesOfSums];  ///< zeros behind the last tile

  /// Gathers the sums of up to kTilesOfSums tiles from `tile` on, a multiple of that number, for kRows rows
  /// from `row` on.
  [[gnu::noinline]] void gather(const Int8Rows& a, int64_t row, int64_t tile) {
    const int64_t tiles = a.k / kInnerStep;
    const int64_t count = tiles - tile < kTilesOfSums ? tiles - tile : kTilesOfSums;
    for (int r = 0; r < kRows; ++r) {
      const int32_t* const from = a.sums + (row + r) * tiles + tile;
      for (int64_t i = 0; i < count; ++i) sums[r][i] = static_cast<int16_t>(from[i]);
      for (int64_t i = count; i < kTilesOfSums; ++i) sums[r][i] = 0;
    }
  }

  /// The address of the sums of a row's tile, which is even, and of the one behind it.
  VERBATIM_INLINE const int16_t* pair(int row, int64_t tile) const {
    return sums[row] + static_cast<uint64_t>(tile) % kTilesOfSums;
  }
};

}  // namespace verbatim::generic
