#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

// The quantization of the operands and the dequantization of the results of products with the codes of
// quantized keys and values, over V, the type of sixteen floats of an instruction set. Fused operations are
// used only where they are exact, so every instruction set gives the same bits.

/// KernelTable::quantize_scaled_row. The codes of numbers that are not finite are arbitrary.
template <typename V>
ScaledRow quantize_scaled_row(const BFloat16* x, const BFloat16* scales, const BFloat16* zeros, int64_t n,
                              int8_t* codes) {
  alignas(64) float products[kMostScaledNumbers];
  V largest = V::set(0.0f);
  V scaled = V::set(0.0f);
  V shifted = V::set(0.0f);
  for (int64_t i = 0; i < n; i += 16) {
    const V value = V::load(x + i);
    const V product = value * V::load(scales + i);  // exact, as fma() with a zero point is up to the sum
    product.store(products + i);
    largest = max(largest, absolute(product));
    scaled = scaled + product;
    shifted = fma(value, V::load(zeros + i), shifted);
  }
  const float magnitude = reduce_max(largest);
  ScaledRow row{0.0f, reduce_add(scaled), reduce_add(shifted)};
  constexpr float kSmallest = 0x1p-100f;  // below, the factor would not be finite
  if (magnitude < kSmallest) {
    __builtin_memset(codes, 0, static_cast<size_t>(2 * n));
    return row;
  }
  constexpr float kLimit = kLargestRowCode;
  const V factor = V::set(kLimit / magnitude);
  for (int64_t i = 0; i < n; i += 64) {
    V values[4];
    for (int j = 0; j < 4; ++j) {
      const V value = V::load(products + i + 16 * j) * factor;
      values[j] = min(max(value, V::set(-kLimit)), V::set(kLimit));
    }
    V::store_two_int8(values, codes + i, codes + n + i);
  }
  row.step = magnitude / kLimit;
  return row;
}

/// KernelTable::dequantize_sums.
template <typename V>
void dequantize_sums(const int32_t* products, int64_t n, float step, float constant, bool accumulate,
                     float* out) {
  for (int64_t i = 0; i < n; i += 16) {
    const V value = V::from_integers(products + i) * V::set(step) + V::set(constant);
    (accumulate ? V::load(out + i) + value : value).store(out + i);
  }
}

}  // namespace verbatim::generic
