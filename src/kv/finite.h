#pragma once

#include "base/float16.h"

namespace verbatim {

// Numbers that are stored must be finite: a row that may not see a position multiplies its value by a
// probability of zero, and only a finite value then leaves the row as it is.

/// A rounded number, NaN as zero and infinity, whose bits are `infinity`, as the largest number there is.
template <typename Half>
constexpr Half finite(Half rounded, uint16_t infinity) {
  const uint16_t magnitude = rounded.bits & 0x7fff;
  if (magnitude < infinity) return rounded;
  if (magnitude > infinity) return {0};
  return {static_cast<uint16_t>(rounded.bits - 1)};
}

inline BFloat16 finite_bfloat16(float value) {
  return finite(to_bfloat16(value), 0x7f80);
}
inline Float16 finite_float16(float value) {
  return finite(to_float16(value), 0x7c00);
}

}  // namespace verbatim
