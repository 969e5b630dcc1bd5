#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// Calls work.operator()<0>(), .. work.operator()<kCount - 1>().
template <int kCount, int kFirst = 0, typename Work>
VERBATIM_INLINE void each_index(Work&& work) {
  if constexpr (kFirst < kCount) {
    work.template operator()<kFirst>();
    each_index<kCount, kFirst + 1>(work);
  }
}

}  // namespace verbatim::generic
