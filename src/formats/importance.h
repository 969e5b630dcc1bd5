#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace verbatim {

/// A weight as quantizers see it: NaN and infinity become zero, and −0 becomes +0.
inline float finite_or_zero(float w) {
  return std::isfinite(w) ? w + 0.0f : 0.0f;
}

/// The importance of weight i (thesis eq. 3.5): its sensitivity, the Fisher information, or its magnitude if
/// `sensitivities` is empty. An invalid sensitivity (NaN, infinite or negative) counts as zero.
inline float importance(std::span<const float> weights, std::span<const float> sensitivities, size_t i) {
  if (sensitivities.empty()) return std::fabs(finite_or_zero(weights[i]));
  return std::max(0.0f, finite_or_zero(sensitivities[i]));
}

}  // namespace verbatim
