#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

template <typename V, bool kZeros, bool kAccumulate>
VERBATIM_INLINE void add_scaled_rows(const ScaledGroup& g) {
  const V scale = V::load(g.scales);
  V zero = V::set(0.0f);
  if constexpr (kZeros) {
    float zeros[kPanelWidth];
    for (int64_t i = 0; i < kPanelWidth; ++i) zeros[i] = static_cast<float>(g.zeros[i]);
    zero = V::load(zeros);
  }
  for (int64_t r = 0; r < g.rows; ++r) {
    V product = V::load(g.products + r * g.products_stride);
    if constexpr (kZeros) product = product - zero * V::set(g.group_sums[r * g.group_sums_stride]);
    const V scaled = scale * product;
    float* const c = g.c + r * g.c_stride;
    if constexpr (kAccumulate) {
      (V::load(c) + scaled).store(c);
    } else {
      scaled.store(c);
    }
  }
}

template <typename V, bool kZeros>
VERBATIM_INLINE void add_scaled_group(const ScaledGroup& g) {
  if (g.accumulate) {
    add_scaled_rows<V, kZeros, true>(g);
  } else {
    add_scaled_rows<V, kZeros, false>(g);
  }
}

template <typename V>
void add_scaled(const ScaledGroup& group) {
  if (group.zeros != nullptr) {
    add_scaled_group<V, true>(group);
  } else {
    add_scaled_group<V, false>(group);
  }
}

}  // namespace verbatim::generic
