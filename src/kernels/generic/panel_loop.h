#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// Walks rows × panels in blocks and calls Micro::template block<Rows, Panels>(product, first_row,
/// first_panel) on each. Blocks of a panel group follow each other so that its weights stay in the cache for
/// all rows.
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
  int64_t panel = 0;
  for (; panel + Micro::kPanels <= product.panel_count; panel += Micro::kPanels) {
    rows_of.template operator()<Micro::kPanels>(panel);
  }
  for (; panel < product.panel_count; ++panel) rows_of.template operator()<1>(panel);
}

}  // namespace verbatim::generic
