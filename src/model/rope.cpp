#include "model/rope.h"

#include <cmath>
#include <numbers>

namespace verbatim {

namespace {

/// The frequency scaling of Llama 3.1: long wavelengths are stretched by the factor, short ones kept, those
/// between interpolated.
double scale_llama3(double frequency, const RopeScaling& scaling) {
  const double context = scaling.original_context;
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  if (wavelength < context / scaling.high_frequency_factor) return frequency;
  if (wavelength > context / scaling.low_frequency_factor) return frequency / scaling.factor;
  const double smooth = (context / wavelength - scaling.low_frequency_factor) /
                        (scaling.high_frequency_factor - scaling.low_frequency_factor);
  return (1.0 - smooth) * frequency / scaling.factor + smooth * frequency;
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(const ModelConfig& config) {
  const int32_t half = config.head_dim / 2;
  frequencies_.reserve(static_cast<size_t>(half));
  for (int32_t i = 0; i < half; ++i) {
    double frequency = std::pow(static_cast<double>(config.rope_theta), -2.0 * i / config.head_dim);
    switch (config.rope_scaling.kind) {
      case RopeScaling::Kind::kNone:
        break;
      case RopeScaling::Kind::kLinear:
        frequency /= config.rope_scaling.factor;
        break;
      case RopeScaling::Kind::kLlama3:
        frequency = scale_llama3(frequency, config.rope_scaling);
        break;
    }
    if (!config.rope_frequency_factors.empty()) {
      frequency /= config.rope_frequency_factors[static_cast<size_t>(i)];
    }
    frequencies_.push_back(frequency);
  }
}

void RotaryEmbedding::angles(int64_t position, float* cosine, float* sine) const {
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    const double angle = static_cast<double>(position) * frequencies_[i];
    cosine[i] = static_cast<float>(std::cos(angle));
    sine[i] = static_cast<float>(std::sin(angle));
  }
}

}  // namespace verbatim
