#pragma once

#include "kernels/generic/block_codes.h"

namespace verbatim::generic {

/// Rows of activations that meet the codes of blocks as bytes: the upper and the lower ones, or with kPlanes
/// = 1 the upper ones alone.
template <typename V, typename Dot, BlockShape kShape, int kPlanes>
struct BlockByteRows : BlockCodes<Dot, kShape> {
  using Codes = BlockCodes<Dot, kShape>;
  using Codes::kLayout;
  using Sum = typename Dot::Sum;
  /// The number of quads whose products add up to less than 2^15 in a lane of 16 bits, which has two of each.
  static constexpr int kQuadsInWords = (1 << 15) / (2 * 128 * ((1 << kLayout.bits()) - 1));
  static constexpr int kRunOfQuads = kQuadsInWords < Codes::kQuads ? kQuadsInWords : Codes::kQuads;
  /// The most rows at a time: eight sums where there are many registers, or else two rows.
  static constexpr int kMostRows = V::kSums > 4 ? 8 / kPlanes : 2;
  /// Whether products of `rows` rows are taken to last longer than reading the weights from memory.
  static constexpr bool outlast_memory(int rows) { return V::kSums <= 4 || rows * kPlanes > 2; }

  template <int kRows>
  struct Rows {
    const int8_t* codes[kRows][kPlanes];
    const int32_t* sums[kRows][kPlanes];

    VERBATIM_INLINE void set(int r, const TwoByteRow& from) {
      codes[r][0] = from.upper;
      sums[r][0] = from.upper_sums;
      if constexpr (kPlanes > 1) {
        codes[r][1] = from.lower;
        sums[r][1] = from.lower_sums;
      }
    }
  };

  /// The sums of the products of a block, of each plane.
  template <int kRows>
  using Totals = Sum[kRows][kPlanes];
  template <int kRows>
  VERBATIM_INLINE static void start(Totals<kRows>& totals) {
    for (auto& of_row : totals) {
      for (Sum& total : of_row) total = Dot::start(0);
    }
  }

  /// Adds the scaled products of a group to `totals`: the kGroup-th of a tile that begins at input `at`, the
  /// group-th of the block, the group_at-th of the row.
  template <int kGroup, int kRows>
  VERBATIM_INLINE static void add_group(const uint8_t* block, const uint8_t* tile, int group,
                                        int64_t group_at, int64_t at, const Rows<kRows>& a,
                                        Totals<kRows>& totals) {
    Totals<kRows> dots;
    for (int r = 0; r < kRows; ++r) {
      for (int p = 0; p < kPlanes; ++p) {
        dots[r][p] = Dot::start(kLayout.bias == 0 ? 0 : -kLayout.bias * a.sums[r][p][group_at]);
      }
    }
    add_run<kGroup * Codes::kQuads, Codes::kQuads, kRows>(tile, a, at, dots);
    const Sum scale = Codes::scales(block, group);
    for (int r = 0; r < kRows; ++r) {
      for (int p = 0; p < kPlanes; ++p) totals[r][p] = Dot::add_product(totals[r][p], dots[r][p], scale);
    }
  }

  VERBATIM_INLINE static V value(const Sum (&total)[kPlanes]) {
    if constexpr (kPlanes > 1) {
      return value_of_block<V, Dot>(total[0], total[1]);
    } else {
      return Dot::to_float(total[0]) * V::set(256.0f);
    }
  }

 private:
  template <int kQuad, int kCount, int kRows>
  VERBATIM_INLINE static void add_quads(const uint8_t* tile, const Rows<kRows>& a, int64_t at,
                                        typename Dot::Partial (&partial)[kRows][kPlanes]) {
    const auto weights = Codes::template codes<kQuad>(tile);
    for (int r = 0; r < kRows; ++r) {
      for (int p = 0; p < kPlanes; ++p)
        partial[r][p] = Dot::add(partial[r][p], weights, a.codes[r][p] + at + kQuad * 4);
    }
    if constexpr (kCount > 1) add_quads<kQuad + 1, kCount - 1, kRows>(tile, a, at, partial);
  }

  /// Adds the products of the quads from kQuad on, of one group, to `dots`.
  template <int kQuad, int kCount, int kRows>
  VERBATIM_INLINE static void add_run(const uint8_t* tile, const Rows<kRows>& a, int64_t at,
                                      Totals<kRows>& dots) {
    constexpr int kRun = kRunOfQuads < kCount ? kRunOfQuads : kCount;
    typename Dot::Partial partial[kRows][kPlanes];
    for (int r = 0; r < kRows; ++r) {
      for (int p = 0; p < kPlanes; ++p) partial[r][p] = Dot::open(dots[r][p]);
    }
    add_quads<kQuad, kRun, kRows>(tile, a, at, partial);
    for (int r = 0; r < kRows; ++r) {
      for (int p = 0; p < kPlanes; ++p) dots[r][p] = Dot::close(dots[r][p], partial[r][p]);
    }
    if constexpr (kCount > kRun) add_run<kQuad + kRun, kCount - kRun, kRows>(tile, a, at, dots);
  }
};

}  // namespace verbatim::generic
