#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/model_config.h"

namespace verbatim {

/// The rotary embedding of a model: the angle per position of each rotated pair, with the model's scaling
/// applied.
///
/// With dynamic NTK scaling the frequencies of a row depend on the length of the sequence. Here that length
/// is the row's own position + 1, never the length of a prompt: a row would otherwise depend on the rows that
/// share its pass, and keys in the cache on how the prompt was cut into passes. Transformers computes the
/// same when it decodes token by token. (When it evaluates a prompt beyond the original context in one pass,
/// it gives the whole prompt the frequencies of the last token.)
///
/// LongRoPE has two lists of factors, for short and for long sequences. Here the model's context chooses,
/// once: the long ones if it is longer than the original context, as llama.cpp does for the context that it
/// is given. (Transformers takes the short ones for every sequence within the original context, so it gives a
/// sequence that grows beyond it keys of both kinds.)
class RotaryEmbedding {
 public:
  explicit RotaryEmbedding(const ModelConfig& config);

  /// The rotary embeddings of a model: one, or beside it that of the layers with a window.
  static std::vector<RotaryEmbedding> all_of(const ModelConfig& config);

  int64_t half() const { return static_cast<int64_t>(frequencies_.size()); }
  /// Writes the cosines and sines (half() each) of the angles at a position, times the attention factor of
  /// YaRN or LongRoPE. They depend on the position alone.
  void angles(int64_t position, float* cosine, float* sine) const;

  /// The frequencies of the rotated pairs, in radians per position. With dynamic scaling they are those of
  /// positions within the original context.
  std::span<const double> frequencies() const { return frequencies_; }

 private:
  /// The logarithm of the factor by which dynamic scaling stretches the base for a row at `position`. The
  /// exponent that belongs to the factor is left out; stretch_powers_ has it for each pair. 0 within the
  /// original context, and always without dynamic scaling.
  double log_stretch(int64_t position) const;

  RopeScaling scaling_;
  std::vector<double> frequencies_;
  std::vector<double> stretch_powers_;  // by pair; empty without dynamic scaling
};

}  // namespace verbatim
