#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "base/float16.h"

namespace verbatim {

/// The levels that a group of weights may be rounded to: a code of some bits, less the code that stands for
/// zero, times a scale.
struct IntegerGrid {
  Float16 scale{0};
  uint8_t zero = 0;  ///< the code of zero
  uint8_t last = 0;  ///< the largest code

  /// The code whose value is nearest to a weight; that of zero for NaN and infinity.
  uint8_t code(float weight) const {
    if (scale.bits == 0 || !std::isfinite(weight)) return zero;
    const float steps = std::nearbyint(weight / to_float(scale)) + static_cast<float>(zero);
    return static_cast<uint8_t>(std::clamp(steps, 0.0f, static_cast<float>(last)));
  }
  float value(uint8_t code) const {
    return static_cast<float>(static_cast<int>(code) - static_cast<int>(zero)) * to_float(scale);
  }
};

/// The levels of codes of so many bits, at most 8, with zero in the middle, and one level more below it.
IntegerGrid symmetric_grid(Float16 scale, int bits);

/// Chooses the levels of a group: of a few scales near its full range those with the smallest squared error.
/// Asymmetric levels have zero where the group's least and largest weight want it. NaN and infinity do not
/// count.
IntegerGrid best_grid(std::span<const float> weights, int bits, bool asymmetric);

}  // namespace verbatim
