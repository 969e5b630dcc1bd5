#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// Whether the registers of V hold the sums of five rows, and of three rows with two panels, beside what is
/// multiplied: V::kOddBlocks, or not.
template <typename V>
constexpr bool odd_blocks() {
  if constexpr (requires { V::kOddBlocks; }) {
    return V::kOddBlocks;
  } else {
    return false;
  }
}

/// The number of panels that more than five rows meet together: two for 6, 7 and 11 rows, which blocks of
/// five and of four cannot make up, so that the last two rows can meet both panels in one block.
constexpr int64_t panels_of_many_rows(int64_t rows) {
  return rows == 6 || rows == 7 || rows == 11 ? 2 : 1;
}

/// How many of `rows` rows, a number that blocks of five and of four make up, meet a panel in blocks of five:
/// as many as leave a multiple of four.
constexpr int64_t rows_in_fives(int64_t rows) {
  return rows - 4 * ((5 - rows % 5) % 5);
}

/// Does the work of for_each_block() for more rows than a block has, where registers hold five rows' sums.
/// All rows follow each other while the weights of a panel are in the cache, five at a time where that comes
/// out even: the eight sums of four rows are just as many as two multipliers that take four cycles can have
/// in work, so that every sum that is late leaves a multiplier idle.
template <typename Micro, typename Product>
void for_each_block_of_many_rows(const Product& product) {
  const int64_t together = panels_of_many_rows(product.rows);
  const int64_t end = product.rows - (together > 1 ? 2 : 0);
  const int64_t fives = rows_in_fives(end);
  for (int64_t first = 0; first < product.panel_count; first += together) {
    int64_t panel = first;
    for (; panel < first + together && panel < product.panel_count; ++panel) {
      int64_t row = 0;
      for (; row < fives; row += 5) Micro::template block<5, 1>(product, row, panel);
      for (; row < end; row += 4) Micro::template block<4, 1>(product, row, panel);
    }
    if (together == 1) continue;
    if (panel - first == 2) {
      Micro::template block<2, 2>(product, end, first);
    } else {
      Micro::template block<2, 1>(product, end, first);
    }
  }
}

/// Walks rows × panels in blocks and calls Micro::template block<Rows, Panels>(product, first_row,
/// first_panel) on each. A block has up to Micro::kSums panels × rows, as the registers allow: with few rows,
/// more panels keep the multipliers busy. Blocks of four rows follow each other over all rows while the
/// weights of a panel are in the cache; the rows that are left then meet a few panels together. With
/// odd_blocks<Micro>() up to five rows are one block, and more go to for_each_block_of_many_rows().
template <typename Micro, typename Product>
void for_each_block(const Product& product) {
  static constexpr bool kOdd = odd_blocks<Micro>();
  if constexpr (kOdd) {
    if (product.rows > 5) return for_each_block_of_many_rows<Micro>(product);
  }
  static constexpr auto together = [](int rows) {
    if (kOdd && rows == 3) return 2;
    const int panels = Micro::kSums / rows;
    return panels < 1 ? 1 : panels > 4 ? 4 : panels;
  };
  static constexpr int kGroup = together(1);
  const auto blocks = [&]<int kRows>(int64_t row, int64_t panel, int64_t end) {
    constexpr int kPanels = together(kRows);
    for (; panel + kPanels <= end; panel += kPanels)
      Micro::template block<kRows, kPanels>(product, row, panel);
    if constexpr (kPanels > 1) {
      for (; panel < end; ++panel) Micro::template block<kRows, 1>(product, row, panel);
    }
  };
  const auto smaller = [](int64_t a, int64_t b) { return a < b ? a : b; };
  const bool five = kOdd && product.rows == 5;
  const int64_t in_fours = five ? 0 : product.rows - product.rows % 4;
  for (int64_t first = 0; first < product.panel_count; first += kGroup) {
    const int64_t last = smaller(first + kGroup, product.panel_count);
    for (int64_t panel = first; panel < last; panel += together(4)) {
      for (int64_t row = 0; row < in_fours; row += 4) {
        blocks.template operator()<4>(row, panel, smaller(panel + together(4), last));
      }
    }
    int64_t row = in_fours;
    if constexpr (kOdd) {
      if (five) {
        blocks.template operator()<5>(row, first, last);
        continue;
      }
    }
    if constexpr (kOdd || together(3) == kGroup) {
      if (row + 3 == product.rows) {
        blocks.template operator()<3>(row, first, last);
        continue;
      }
    }
    if (row + 2 <= product.rows) {
      blocks.template operator()<2>(row, first, last);
      row += 2;
    }
    if (row < product.rows) blocks.template operator()<1>(row, first, last);
  }
}

}  // namespace verbatim::generic
