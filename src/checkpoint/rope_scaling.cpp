#include "checkpoint/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/elementary.h"

namespace verbatim {

int32_t scaled_context(int32_t stated, std::optional<int32_t> original, float factor) {
  constexpr double kMost = std::numeric_limits<int32_t>::max();
  const double scaled = static_cast<double>(original.value_or(stated)) * static_cast<double>(factor);
  // An invalid factor is reported where the whole config is checked.
  if (!(scaled > stated)) return stated;
  return static_cast<int32_t>(std::min(scaled, kMost));
}

float yarn_attention_factor(float factor, std::optional<float> mscale, std::optional<float> mscale_all_dim) {
  if (!(factor > 1.0f)) return 1.0f;
  const double logarithm = elementary::log(static_cast<double>(factor));
  const auto scale = [logarithm](float weight) { return 0.1 * weight * logarithm + 1.0; };
  if (mscale.value_or(0.0f) != 0.0f && mscale_all_dim.value_or(0.0f) != 0.0f) {
    return static_cast<float>(scale(*mscale) / scale(*mscale_all_dim));
  }
  return static_cast<float>(scale(1.0f));
}

float long_rope_attention_factor(double factor, int32_t original) {
  if (!(factor > 1.0) || original < 2) return 1.0f;
  return static_cast<float>(
      std::sqrt(1.0 + elementary::log(factor) / elementary::log(static_cast<double>(original))));
}

}  // namespace verbatim
