#pragma once

#include "formats/packed_matrix.h"

namespace verbatim {

/// The index of an element within panels of columns with k inner dimensions that are not laid out in pairs,
/// as those of F16 and F32 are not.
inline int64_t unpaired_place(int64_t inner, int64_t column, int64_t k) {
  return (column / kPanelWidth * k + inner) * kPanelWidth + column % kPanelWidth;
}

/// The index of an element within a chunk's keys or values, which are panels of columns with k inner
/// dimensions. For keys the inner dimensions are those of the head and the columns are positions; for values
/// the inner dimensions are positions and the columns are those of the head.
inline int64_t panel_place(Element element, int64_t inner, int64_t column, int64_t k) {
  if (element == Element::kF16) return unpaired_place(inner, column, k);
  const int64_t panel = column / kPanelWidth * k * kPanelWidth;
  const int64_t lane = column % kPanelWidth;
  return panel + inner / 2 * 2 * kPanelWidth + lane * 2 + inner % 2;
}

}  // namespace verbatim
