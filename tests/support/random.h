#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "base/float16.h"

namespace verbatim::test {

/// Normally distributed floats, the same for the same seed.
inline std::vector<float> random_floats(size_t count, uint32_t seed, float deviation = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

inline std::vector<BFloat16> random_bf16(size_t count, uint32_t seed, float deviation = 1.0f) {
  std::vector<BFloat16> values;
  for (const float value : random_floats(count, seed, deviation)) values.push_back(to_bfloat16(value));
  return values;
}

}  // namespace verbatim::test
