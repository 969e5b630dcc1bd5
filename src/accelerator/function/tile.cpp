#include "accelerator/function/tile.h"

#include <algorithm>

#include "accelerator/function/float_units.h"

namespace verbatim::accelerator {

uint32_t sum_of_group(std::span<const uint32_t> products) {
  std::array<uint32_t, kGroupInputs> level{};
  std::copy(products.begin(), products.end(), level.begin());
  for (size_t count = kGroupInputs / 2; count > 0; count /= 2) {
    for (size_t i = 0; i < count; ++i) level[i] = add_fp32(level[2 * i], level[2 * i + 1]);
  }
  return level[0];
}

uint32_t sum_of_group_in_one_pe(std::span<const uint32_t> products) {
  // The sum of a level waits until its neighbour is there.
  std::array<uint32_t, 8> waiting{};
  for (size_t i = 0; i < kGroupInputs; ++i) {
    uint32_t sum = i < products.size() ? products[i] : 0;
    size_t level = 0;
    for (; (i >> level & 1) != 0; ++level) sum = add_fp32(waiting[level], sum);
    waiting[level] = sum;
  }
  return waiting.back();
}

uint32_t full_dot(std::span<const uint16_t> activations, std::span<const StoredWeight> weights) {
  uint32_t sum = 0;
  std::array<uint32_t, kGroupInputs> products{};
  for (size_t begin = 0; begin < weights.size(); begin += kGroupInputs) {
    const size_t count = std::min(kGroupInputs, weights.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      products[i] = full_product(activations[begin + i], full_weight(weights[begin + i]));
    }
    sum = add_fp32(sum, sum_of_group(std::span(products).first(count)));
  }
  return sum;
}

std::array<uint32_t, 3> draft_dots(std::span<const uint16_t> activations,
                                   const std::array<std::span<const StoredWeight>, 3>& weights,
                                   const std::array<std::span<const uint32_t>, 3>& scales) {
  std::array<uint32_t, 3> sums{};
  std::array<uint32_t, kGroupInputs> products{};
  for (size_t lane = 0; lane < sums.size(); ++lane) {
    const std::span<const StoredWeight> row = weights[lane];
    for (size_t begin = 0; begin < row.size(); begin += kGroupInputs) {
      const size_t count = std::min(kGroupInputs, row.size() - begin);
      for (size_t i = 0; i < count; ++i) {
        products[i] = draft_product(activations[begin + i], draft_weight(row[begin + i]));
      }
      const uint32_t group = sum_of_group(std::span(products).first(count));
      sums[lane] = add_fp32(sums[lane], multiply_fp32(group, scales[lane][begin / kGroupInputs]));
    }
  }
  return sums;
}

}  // namespace verbatim::accelerator
