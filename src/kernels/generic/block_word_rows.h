#pragma once

#include "kernels/generic/block_codes.h"

namespace verbatim::generic {

/// Rows of activations that meet the codes of blocks as words, for a Dot that MultipliesWords: where dot
/// products of bytes add up in sixteen bits, the two bytes of an activation would take a product each, and
/// every few of them a product more that widens the sum. Such a Dot also has
///   add_word_product(sum, a, b): sum + a · b, lane by lane, where a and b are of sixteen bits with a sign,
///   and the upper half of the lanes of b is zero.
template <typename V, typename Dot, BlockShape kShape>
struct BlockWordRows : BlockCodes<Dot, kShape> {
  using Codes = BlockCodes<Dot, kShape>;
  using Codes::kLayout;
  using Sum = typename Dot::Sum;
  /// The most rows at a time: eight where there are many registers, or else as many as have registers for
  /// their sums beside two of codes and one of activations.
  static constexpr int kMostRows = V::kSums > 4 ? 8 : 6;
  /// Whether products of `rows` rows are taken to last longer than reading the weights from memory.
  static constexpr bool outlast_memory(int rows) { return V::kSums <= 4 || rows > 1; }

  template <int kRows>
  struct Rows {
    const int16_t* words[kRows];
    const int32_t* upper_sums[kRows];
    const int32_t* lower_sums[kRows];

    VERBATIM_INLINE void set(int r, const TwoByteRow& from) {
      words[r] = from.words;
      upper_sums[r] = from.upper_sums;
      lower_sums[r] = from.lower_sums;
    }
  };

  /// The sums of the products of a block. The products of a group, below 2^25, are cut into two words before
  /// they meet the scale.
  template <int kRows>
  using Totals = PartsOfSum<Dot>[kRows];
  template <int kRows>
  VERBATIM_INLINE static void start(Totals<kRows>& totals) {
    for (auto& total : totals) total.start();
  }

  /// Adds the scaled products of a group to `totals`: the kGroup-th of a tile that begins at input `at`, the
  /// group-th of the block, the group_at-th of the row.
  template <int kGroup, int kRows>
  VERBATIM_INLINE static void add_group(const uint8_t* block, const uint8_t* tile, int group,
                                        int64_t group_at, int64_t at, const Rows<kRows>& a,
                                        Totals<kRows>& totals) {
    Sum dots[kRows];
    start_dots<kRows>(a, group_at, dots);
    add_quads<kGroup * Codes::kQuads, Codes::kQuads, kRows>(tile, a, at, dots);
    const Sum scale = Dot::template low_bits<0xffff>(Codes::scales(block, group));
    add_scaled<kRows>(dots, scale, totals);
  }

  VERBATIM_INLINE static V value(const PartsOfSum<Dot>& total) { return total.template value<V>(); }

 private:
  // Rows are counted by templates where their sums are to stay in registers: the compiler keeps an array in
  // memory whose elements a loop chooses.

  template <int kRows, int kRow = 0>
  VERBATIM_INLINE static void start_dots(const Rows<kRows>& a, int64_t group_at, Sum (&dots)[kRows]) {
    static_assert(kLayout.bias == 0 || kLayout.group == 16);  // a row has a sum for every 16 of its bytes
    int32_t sum = 0;
    if constexpr (kLayout.bias != 0) sum = 256 * a.upper_sums[kRow][group_at] + a.lower_sums[kRow][group_at];
    dots[kRow] = Dot::start(-kLayout.bias * sum);
    if constexpr (kRow + 1 < kRows) start_dots<kRows, kRow + 1>(a, group_at, dots);
  }

  template <int kQuad, int kCount, int kRows>
  VERBATIM_INLINE static void add_quads(const uint8_t* tile, const Rows<kRows>& a, int64_t at,
                                        Sum (&dots)[kRows]) {
    const auto codes = Codes::template codes<kQuad>(tile);
    add_words_of_rows<Dot, kRows>(Dot::even_words(codes), a.words, at + kQuad * 4, dots);
    add_words_of_rows<Dot, kRows>(Dot::odd_words(codes), a.words, at + kQuad * 4 + 2, dots);
    if constexpr (kCount > 1) add_quads<kQuad + 1, kCount - 1, kRows>(tile, a, at, dots);
  }

  template <int kRows, int kRow = 0>
  VERBATIM_INLINE static void add_scaled(const Sum (&dots)[kRows], const Sum& scale, Totals<kRows>& totals) {
    PartsOfSum<Dot>& total = totals[kRow];
    const Sum upper = Dot::template shift_right<PartsOfSum<Dot>::kLowBits>(dots[kRow]);
    total.upper = Dot::add_word_product(total.upper, upper, scale);
    total.lower = Dot::add_word_product(total.lower, PartsOfSum<Dot>::low(dots[kRow]), scale);
    if constexpr (kRow + 1 < kRows) add_scaled<kRows, kRow + 1>(dots, scale, totals);
  }
};

}  // namespace verbatim::generic
