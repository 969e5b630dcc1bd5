#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// Walks rows × panels in blocks and calls Micro::template block<Rows, Panels>(product, first_row,
/// first_panel) on each. Blocks of a panel group follow each other so that its weights stay in the cache for
/// all rows. A block has up to Micro::kSums panels × rows, as the registers allow; with few rows, more panels
/// keep the multipliers busy.
template <typename Micro, typename Product>
void for_each_block(const Product& product) {
  const auto rows_of = [&]<int kPanels>(int64_t panel) {
    int64_t row = 0;
    for (; row + 4 <= product.rows; row += 4) Micro::template block<4, kPanels>(product, row, panel);
    if (row + 2 <= product.rows) {
      Micro::template block<2, kPanels>(product, row, panel);
      row += 2;
    }
    if (row < product.rows) Micro::template block<1, kPanels>(product, row, panel);
  };
  const auto panels_by = [&]<int kPanels>() {
    int64_t panel = 0;
    for (; panel + kPanels <= product.panel_count; panel += kPanels)
      rows_of.template operator()<kPanels>(panel);
    if constexpr (kPanels > 1) {
      for (; panel < product.panel_count; ++panel) rows_of.template operator()<1>(panel);
    }
  };
  constexpr auto clamp = [](int panels) { return panels < 1 ? 1 : panels > 4 ? 4 : panels; };
  if (product.rows == 1) {
    panels_by.template operator()<clamp(Micro::kSums)>();
  } else if (product.rows < 4) {
    panels_by.template operator()<clamp(Micro::kSums / 2)>();
  } else {
    panels_by.template operator()<clamp(Micro::kSums / 4)>();
  }
}

}  // namespace verbatim::generic
