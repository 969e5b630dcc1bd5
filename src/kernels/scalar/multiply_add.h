#pragma once

#include <bit>
#include <cstdint>

#include "kernels/kernel_table.h"

namespace verbatim::scalar {

// Multiply-adds that round once, as the instructions of other machine paths do. Where the processor that the
// reference is compiled for lacks the instruction, doubles take its place. (The C library's fmaf would call a
// function for each number.)

/// Computes a · b + c, rounded once.
VERBATIM_INLINE float multiply_add(float a, float b, float c) {
#ifdef __FP_FAST_FMAF
  return __builtin_fmaf(a, b, c);
#else
  const double product = static_cast<double>(a) * static_cast<double>(b);  // exact: 48 bits
  const double sum = product + static_cast<double>(c);
  // What rounding has taken from the sum (Knuth's TwoSum).
  const double part = sum - product;
  const double lost = (product - (sum - part)) + (static_cast<double>(c) - part);
  // A sum that is not exact gets an odd last bit: then rounding it to float can mistake it for neither a
  // float nor the middle between two (Boldo, Melquiond: rounding to odd).
  const auto bits = std::bit_cast<uint64_t>(sum);
  // An even sum on the far side of the exact one steps back toward zero, which makes it odd; one on the near
  // side becomes odd too.
  const uint64_t toward_zero = (lost < 0.0) != (sum < 0.0) ? 1 : 0;
  // Where the sum is infinite or no number, so that there is no error, it stays as it is.
  const bool exact = !(lost < 0.0) && !(lost > 0.0);
  const bool keep = exact || (bits & 1) != 0;
  const uint64_t rounded = keep ? bits : (bits - toward_zero) | 1;
  return static_cast<float>(std::bit_cast<double>(rounded));
#endif
}

/// Computes a · b + c, rounded once, where a and b are BF16 numbers. Their product has 16 bits, so that the
/// double nearest to the sum is never mistaken for the middle between two floats: where the sum needs more
/// than a double's 53 bits, one of product and c is too small to matter beside the other.
VERBATIM_INLINE float multiply_add_bf16(float a, float b, float c) {
#ifdef __FP_FAST_FMAF
  return __builtin_fmaf(a, b, c);
#else
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c));
#endif
}

}  // namespace verbatim::scalar
