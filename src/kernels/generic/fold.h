#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

// What goes into and comes out of products with the codes of quantized keys and values, over V, sixteen
// floats of an instruction set. Without fused operations but where they are exact: every instruction set
// gives the same bits.

/// KernelTable::fold. A number that is not finite has some code or other.
template <typename V>
float fold(const BFloat16* x, const BFloat16* scales, int64_t n, int8_t* codes) {
  V largest = V::set(0.0f);
  for (int64_t i = 0; i < n; i += 16) largest = max(largest, absolute(V::load(x + i) * V::load(scales + i)));
  const float magnitude = reduce_max(largest);
  constexpr float kSmallest = 0x1p-100f;  // below, the factor would not be finite
  if (magnitude < kSmallest) {
    __builtin_memset(codes, 0, static_cast<size_t>(2 * n));
    return 0.0f;
  }
  constexpr float kLimit = kLargestFold;
  const V factor = V::set(kLimit / magnitude);
  for (int64_t i = 0; i < n; i += 16) {
    const V value = round(V::load(x + i) * V::load(scales + i) * factor);
    min(max(value, V::set(-kLimit)), V::set(kLimit)).store_two_int8(codes + i, codes + n + i);
  }
  return magnitude / kLimit;
}

/// KernelTable::dot. The products are exact.
template <typename V>
float dot(const BFloat16* x, const BFloat16* y, int64_t n) {
  V sum = V::set(0.0f);
  for (int64_t i = 0; i < n; i += 16) sum = fma(V::load(x + i), V::load(y + i), sum);
  return reduce_add(sum);
}

/// KernelTable::unfold.
template <typename V>
void unfold(const int32_t* products, int64_t n, float step, float constant, bool accumulate, float* out) {
  for (int64_t i = 0; i < n; i += 16) {
    const V value = V::from_integers(products + i) * V::set(step) + V::set(constant);
    (accumulate ? V::load(out + i) + value : value).store(out + i);
  }
}

}  // namespace verbatim::generic
