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

/// Walks rows × panels in blocks and calls Micro::template block<Rows, Panels>(product, first_row,
/// first_panel) on each. A block has up to Micro::kSums panels × rows, as the registers allow: with few rows,
/// more panels keep the multipliers busy. Blocks of four rows follow each other over all rows while the
/// weights of a panel are in the cache; the rows that are left then meet a few panels together. With
/// odd_blocks<Micro>() a single row is not left: it joins the four before it.
template <typename Micro, typename Product>
void for_each_block(const Product& product) {
  static constexpr bool kOdd = odd_blocks<Micro>();
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
  const bool five = kOdd && product.rows > 4 && product.rows % 4 == 1;
  const int64_t in_fours = product.rows - (five ? 5 : product.rows % 4);
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
