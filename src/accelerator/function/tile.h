#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "accelerator/function/stored_weight.h"

namespace verbatim::accelerator {

// What the array computes of a row and an output, in the one order of sums that every mapping keeps, so that
// a row's result depends on nothing but the row: the products of a group of 128 inputs are added in a
// balanced tree, neighbours first; the sums of groups one after the other. PEs that a group lies across have
// such a tree between them; a PE that takes a group by itself keeps one sum for each level of the tree.

inline constexpr size_t kGroupInputs = 128;

/// The sum of the products of a group in the order of the tree. A group that is not full ends with zeros.
uint32_t sum_of_group(std::span<const uint32_t> products);
/// The same sum as a PE by itself makes it, product after product.
uint32_t sum_of_group_in_one_pe(std::span<const uint32_t> products);

/// A row of FP16 activations times the weights of an output, in full mode: FP32.
uint32_t full_dot(std::span<const uint16_t> activations, std::span<const StoredWeight> weights);

/// The same in quantize mode for three outputs at once, as the PEs do it: each group's sum is multiplied with
/// the group's scale, an FP32, and the results are added. All three have as many weights and scales.
std::array<uint32_t, 3> draft_dots(std::span<const uint16_t> activations,
                                   const std::array<std::span<const StoredWeight>, 3>& weights,
                                   const std::array<std::span<const uint32_t>, 3>& scales);

}  // namespace verbatim::accelerator
