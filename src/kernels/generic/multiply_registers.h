#pragma once

#include <cstdint>

namespace verbatim::generic {

/// KernelTable::multiply_registers for a vector of sixteen floats.
template <typename V>
int64_t multiply_registers(int64_t steps, float* out) {
  constexpr int kSums = V::kSums > 6 ? 12 : 6;  // enough to hide the latency, few enough for the registers
  float half = 0.5f;
  __asm__("" : "+m"(half));  // or the compiler finds that the sums stay at 1
  const V factor = V::set(half);
  V sums[kSums];
  for (V& sum : sums) sum = V::set(1.0f);
  for (int64_t step = 0; step < steps; ++step) {
    for (V& sum : sums) sum = fma_of_bf16(sum, factor, factor);
  }
  for (int i = 1; i < kSums; ++i) sums[0] = sums[0] + sums[i];
  sums[0].store(out);
  return steps * kSums * 16 * 2;
}

}  // namespace verbatim::generic
