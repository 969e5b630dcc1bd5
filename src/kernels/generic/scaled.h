#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// How the products of a reading are scaled: not at all, or each group of some tiles by itself.
struct Unscaled {
  static constexpr int64_t kGroupTiles = 0;
  [[maybe_unused]] static constexpr bool kZeros = false;
};
template <int64_t kTiles, bool kWithZeros = false>
struct Scaled {
  static constexpr int64_t kGroupTiles = kTiles;
  static constexpr bool kZeros = kWithZeros;
};

/// The operands of scaling after the product: the products of rows with the codes of one scale group are
/// added to the results of a panel's columns, c += scale · (product - zero · Σ activations), each operation
/// rounded. Without `accumulate` c is overwritten.
struct ScaledGroup {
  const float* products;  ///< [rows][products_stride]
  int64_t products_stride;
  int64_t rows;
  const Float16* scales;    ///< 16
  const uint8_t* zeros;     ///< 16, or null
  const float* group_sums;  ///< with zeros: the sums of each row's activations in the group, summed in order
  int64_t group_sums_stride;
  float* c;
  int64_t c_stride;
  bool accumulate;
};

/// What a scale group adds to a result: scale · (product - zero · Σ activations), each operation rounded. The
/// sum of the activations is sums[index]; without kZeros neither it nor `zero` is used.
template <bool kZeros, typename V>
VERBATIM_INLINE V scaled_product(V product, V scale, [[maybe_unused]] V zero,
                                 [[maybe_unused]] const float* sums, [[maybe_unused]] int64_t index) {
  if constexpr (kZeros) product = product - zero * V::set(sums[index]);
  return scale * product;
}

template <typename V, bool kZeros, bool kAccumulate>
VERBATIM_INLINE void add_scaled_rows(const ScaledGroup& g) {
  const V scale = V::load(g.scales);
  V zero = V::set(0.0f);
  if constexpr (kZeros) zero = V::load(g.zeros);
  for (int64_t r = 0; r < g.rows; ++r) {
    const V scaled = scaled_product<kZeros>(V::load(g.products + r * g.products_stride), scale, zero,
                                            g.group_sums, r * g.group_sums_stride);
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

}  // namespace verbatim::generic
