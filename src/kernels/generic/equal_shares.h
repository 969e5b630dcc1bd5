#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// Calls each(row, count) for some of `rows` rows after others: as few shares of at most `most` rows as there
/// can be, about equal, so that none has less than half as many where there are several.
template <typename Each>
VERBATIM_INLINE void for_equal_shares(int64_t rows, int64_t most, const Each& each) {
  for (int64_t row = 0, count = 0; row < rows; row += count) {
    const int64_t shares = (rows - row + most - 1) / most;
    count = (rows - row + shares - 1) / shares;
    each(row, count);
  }
}

}  // namespace verbatim::generic
