#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/model_config.h"

namespace verbatim {

/// The rotary embedding of a model: the angle per position of each rotated pair, with the model's scaling
/// applied.
///
/// With dynamic NTK scaling the frequencies of a row depend on the length of the sequence. Here that is
/// the row's own position + 1, never the length of a prompt: a row would otherwise depend on what shares a
/// pass with it, and keys in the cache on how the prompt was cut. It is what Transformers computes when
/// it decodes token by token. (When it takes in a prompt beyond the original context in one pass, it
/// gives all of the prompt the frequencies of its last token.)
class RotaryEmbedding {
 public:
  explicit RotaryEmbedding(const ModelConfig& config);

  int64_t half() const { return static_cast<int64_t>(frequencies_.size()); }
  /// Cosines and sines (half() each) of a position, times YaRN's attention factor. They depend on the
  /// position alone.
  void angles(int64_t position, float* cosine, float* sine) const;

  /// The angles per position: with dynamic scaling those of positions within the original context.
  std::span<const double> frequencies() const { return frequencies_; }

 private:
  /// The logarithm of what dynamic scaling stretches the base by for a row at this position, with the power
  /// of the base left out: that is in stretch_powers_. 0 within the original context and without such
  /// scaling.
  double log_stretch(int64_t position) const;

  RopeScaling scaling_;
  std::vector<double> frequencies_;
  std::vector<double> stretch_powers_;  // by pair; empty without dynamic scaling
};

}  // namespace verbatim
