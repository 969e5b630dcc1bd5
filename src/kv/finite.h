#pragma once

#include <cmath>
#include <limits>

#include "base/float16.h"

namespace verbatim {

// Stored numbers must be finite: a row that may not see a position multiplies its values by a probability of
// zero, and zero times infinity or NaN would be NaN.

/// Makes a rounded number finite: NaN becomes zero and infinity, whose bits are `infinity`, the largest
/// finite number.
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
/// Makes a number finite as finite() does, without rounding it.
inline float finite_float(float value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? 0.0f : std::copysign(std::numeric_limits<float>::max(), value);
}

}  // namespace verbatim
