#pragma once

#include <cstdint>

namespace verbatim::accelerator {

// The arithmetic of a PE in integers alone, bit by bit as hardware would do it. Numbers in FP32 and FP16 are
// their bits. A NaN that comes out is always kNan.

inline constexpr uint32_t kNan = 0x7fc00000;

/// The product of two significands of 11 bits, hidden ones included, from the two halves of the second: 22
/// bits.
uint32_t multiply_significands(uint32_t activation, uint32_t weight);

/// An FP16 activation times a weight S1E4M10, exact in FP32. Zero times infinity is NaN.
uint32_t full_product(uint16_t activation, uint16_t weight);

/// An FP16 activation times a draft weight S1E4, whose value is ± 2^(exponent - 15): exact in FP32; the
/// significand passes and the exponents are added.
uint32_t draft_product(uint16_t activation, uint8_t weight);

/// The sum of two FP32 numbers, rounded to the nearest, ties to even, with subnormal numbers.
uint32_t add_fp32(uint32_t a, uint32_t b);

/// The product of two FP32 numbers, rounded so. It serves the scales of groups.
uint32_t multiply_fp32(uint32_t a, uint32_t b);

}  // namespace verbatim::accelerator
