#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace verbatim {

/// A weight as quantizers take it: NaN and infinity count as zero, and −0 is a zero like any other.
inline float finite_or_zero(float w) {
  return std::isfinite(w) ? w + 0.0f : 0.0f;
}

/// How much weight i counts (thesis eq. 3.5): its sensitivity, the Fisher information, or where none are
/// given (empty) its magnitude. A sensitivity that cannot be one (NaN, infinite, negative) counts as zero.
inline float importance(std::span<const float> weights, std::span<const float> sensitivities, size_t i) {
  if (sensitivities.empty()) return std::fabs(finite_or_zero(weights[i]));
  return std::max(0.0f, finite_or_zero(sensitivities[i]));
}

}  // namespace verbatim
