#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "verbatim/model.h"

namespace verbatim {

/// How the hidden states of a text's tokens become one vector.
enum class Pooling {
  kMean,  ///< their mean
  kLast,  ///< the hidden state of the last token
};

/// How a text is embedded.
struct EmbedOptions {
  Pooling pooling = Pooling::kMean;
  /// Scales the vector to the length 1.
  bool normalize = true;
  /// The reading of the weights to embed with, by name ("full", "mxfp4-w4a8", ...); the model is loaded with
  /// its format.
  std::string reading = "full";
  /// Threads to compute with; 0 takes one for every core that this process may use. Changes no bit of the
  /// result.
  int32_t threads = 0;
};

/// The embedding of a text: a vector of as many numbers as a hidden state has, made from the hidden states of
/// the model's last layer behind its final normalization. A decoder that was not trained for embeddings gives
/// vectors that compare texts only roughly. A model that was quantized with the scheme "quarot" has its
/// hidden states rotated: its vectors compare with each other, but not with vectors of the model it was made
/// from.
///
/// Throws Error(kBadInput) for no tokens, more tokens than the model's context, a token outside the
/// vocabulary, and hidden states that are not finite; Error(kUsage) for options out of range, or when the
/// model was loaded without the format of the reading.
std::vector<float> embed(const Model& model, std::span<const int32_t> tokens,
                         const EmbedOptions& options = {});

}  // namespace verbatim
