#include "checkpoint/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

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

double llama3_frequency(double frequency, const RopeScaling& scaling) {
  const double context = scaling.original_context;
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  if (wavelength < context / scaling.high_frequency_factor) return frequency;
  if (wavelength > context / scaling.low_frequency_factor) return frequency / scaling.factor;
  const double smooth = (context / wavelength - scaling.low_frequency_factor) /
                        (scaling.high_frequency_factor - scaling.low_frequency_factor);
  return (1.0 - smooth) * frequency / scaling.factor + smooth * frequency;
}

std::vector<float> llama3_divisors(const ModelConfig& config) {
  const int32_t elements = rotated_elements(config);
  std::vector<float> divisors;
  for (int32_t i = 0; i < elements / 2; ++i) {
    const double frequency = elementary::pow(static_cast<double>(config.rope_theta), -2.0 * i / elements);
    divisors.push_back(static_cast<float>(frequency / llama3_frequency(frequency, config.rope_scaling)));
  }
  return divisors;
}

}  // namespace verbatim
