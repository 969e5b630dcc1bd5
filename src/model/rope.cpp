#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "base/elementary.h"
#include "checkpoint/rope_scaling.h"

namespace verbatim {

namespace {

/// The ramp of YaRN (Peng et al., arXiv:2309.00071, §3.2): the share of the unscaled frequency in the
/// frequency of each pair. It is 1 for pairs that turn often in the original context, 0 for slow ones, and
/// falls linearly between. As in Transformers, the bounds of the ramp are limited by the size of the head,
/// not by the number of pairs.
class YarnRamp {
 public:
  explicit YarnRamp(const ModelConfig& config) {
    const RopeScaling& scaling = config.rope_scaling;
    const double size = rotated_elements(config);
    // The index of the pair, not necessarily an integer, that makes this many turns in the original context.
    const auto pair_of = [&](double turns) {
      return size * elementary::log(scaling.original_context / (turns * 2.0 * std::numbers::pi)) /
             (2.0 * elementary::log(static_cast<double>(config.rope_theta)));
    };
    begin_ = pair_of(scaling.yarn.beta_fast);
    end_ = pair_of(scaling.yarn.beta_slow);
    if (scaling.yarn.truncate) {
      begin_ = std::floor(begin_);
      end_ = std::ceil(end_);
    }
    begin_ = std::max(begin_, 0.0);
    end_ = std::min(end_, size - 1.0);
    if (begin_ == end_) end_ += 0.001;
  }

  double kept(int32_t pair) const { return 1.0 - std::clamp((pair - begin_) / (end_ - begin_), 0.0, 1.0); }

 private:
  double begin_;
  double end_;
};

double scale_yarn(double frequency, double factor, double kept) {
  return frequency / factor * (1.0 - kept) + frequency * kept;
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(const ModelConfig& config) : scaling_(config.rope_scaling) {
  const int32_t elements = rotated_elements(config);
  const int32_t half = elements / 2;
  // The longest sequence decides, not a prompt: all rows of a model are rotated alike.
  const LongRope& long_rope = scaling_.long_rope;
  const std::vector<float>& divisors =
      config.context > scaling_.original_context ? long_rope.long_factors : long_rope.short_factors;
  std::optional<YarnRamp> ramp;
  if (scaling_.kind == RopeScaling::Kind::kYarn) ramp.emplace(config);
  frequencies_.reserve(static_cast<size_t>(half));
  for (int32_t i = 0; i < half; ++i) {
    double frequency = elementary::pow(static_cast<double>(config.rope_theta), -2.0 * i / elements);
    switch (config.rope_scaling.kind) {
      case RopeScaling::Kind::kNone:
        break;
      case RopeScaling::Kind::kLinear:
        frequency /= config.rope_scaling.factor;
        break;
      case RopeScaling::Kind::kLlama3:
        frequency = llama3_frequency(frequency, config.rope_scaling);
        break;
      case RopeScaling::Kind::kDynamic:
        stretch_powers_.push_back(-2.0 * i / (elements - 2));
        break;
      case RopeScaling::Kind::kYarn:
        frequency = scale_yarn(frequency, config.rope_scaling.factor, ramp->kept(i));
        break;
      case RopeScaling::Kind::kLongRope:
        frequency /= divisors[static_cast<size_t>(i)];
        break;
    }
    if (!config.rope_frequency_factors.empty()) {
      frequency /= config.rope_frequency_factors[static_cast<size_t>(i)];
    }
    frequencies_.push_back(frequency);
  }
}

std::vector<RotaryEmbedding> RotaryEmbedding::all_of(const ModelConfig& config) {
  std::vector<RotaryEmbedding> ropes = {RotaryEmbedding(config)};
  if (config.window_rope_theta == 0.0f) return ropes;
  ModelConfig windowed = config;
  windowed.rope_theta = config.window_rope_theta;
  windowed.rope_scaling = {};
  windowed.rope_frequency_factors.clear();
  ropes.emplace_back(windowed);
  return ropes;
}

double RotaryEmbedding::log_stretch(int64_t position) const {
  const double beyond = static_cast<double>(position + 1 - scaling_.original_context);
  if (stretch_powers_.empty() || beyond <= 0.0) return 0.0;
  // factor · length / original - (factor - 1)
  return elementary::log1p(scaling_.factor * beyond / scaling_.original_context);
}

void RotaryEmbedding::angles(int64_t position, float* cosine, float* sine) const {
  const double stretch = log_stretch(position);
  const float attention = scaling_.kind == RopeScaling::Kind::kYarn ? scaling_.yarn.attention_factor
                          : scaling_.kind == RopeScaling::Kind::kLongRope
                              ? scaling_.long_rope.attention_factor
                              : 1.0f;
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    double angle = static_cast<double>(position) * frequencies_[i];
    // The base enters the frequency of n rotated elements with the power -2i / n and is stretched with
    // n / (n - 2).
    if (stretch > 0.0) angle *= elementary::exp(stretch_powers_[i] * stretch);
    const elementary::SineCosine exact = elementary::sine_cosine(angle);
    cosine[i] = static_cast<float>(exact.cosine) * attention;
    sine[i] = static_cast<float>(exact.sine) * attention;
  }
}

}  // namespace verbatim
