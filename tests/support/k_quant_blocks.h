#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace verbatim::test {

/// The types whose blocks the format `k-quants` keeps.
inline constexpr DType kKQuantTypes[] = {DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K,
                                         DType::kQ6_K};

/// The bytes of values as Q4_K or Q6_K, roughly rounded; a multiple of 256 values.
std::string encode_k_quants(DType dtype, const std::vector<float>& values);

/// The bytes of `count` blocks of a type of kKQuantTypes, at random. Their F16 scales are small numbers or,
/// if `extreme`, any: zeros, subnormal numbers, infinities and NaN among them.
std::string random_k_quants(DType dtype, int64_t count, uint32_t seed, bool extreme = false);

/// Where the F16 numbers of a block of a type of kKQuantTypes lie, in bytes.
std::vector<size_t> places_of_scales(DType dtype);

}  // namespace verbatim::test
