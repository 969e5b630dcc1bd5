#pragma once

#include "base/float16.h"

namespace verbatim {

// Numbers that are stored must be finite: a row that may not see a position multiplies its value by a
// probability of zero, and only a finite value then leaves the row as it is.

/// The number, NaN as zero and infinity as the largest one.
inline BFloat16 finite_bfloat16(float value) {
  constexpr uint16_t kLargest = 0x7f7f;
  const BFloat16 rounded = to_bfloat16(value);
  const uint16_t magnitude = rounded.bits & 0x7fff;
  if (magnitude < 0x7f80) return rounded;
  if (magnitude > 0x7f80) return {0};
  return {static_cast<uint16_t>(rounded.bits - magnitude + kLargest)};
}

/// Likewise in F16.
inline Float16 finite_float16(float value) {
  constexpr uint16_t kLargest = 0x7bff;
  const Float16 rounded = to_float16(value);
  const uint16_t magnitude = rounded.bits & 0x7fff;
  if (magnitude < 0x7c00) return rounded;
  if (magnitude > 0x7c00) return {0};
  return {static_cast<uint16_t>(rounded.bits - magnitude + kLargest)};
}

}  // namespace verbatim
