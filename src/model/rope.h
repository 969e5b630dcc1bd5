#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/model_config.h"

namespace verbatim {

/// The rotary embedding of a model: the angle per position of each rotated pair, with the model's scaling
/// applied.
class RotaryEmbedding {
 public:
  explicit RotaryEmbedding(const ModelConfig& config);

  int64_t half() const { return static_cast<int64_t>(frequencies_.size()); }
  /// Cosines and sines (half() each) of a position. They depend on the position alone.
  void angles(int64_t position, float* cosine, float* sine) const;

  std::span<const double> frequencies() const { return frequencies_; }

 private:
  std::vector<double> frequencies_;
};

}  // namespace verbatim
