#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "verbatim/cache.h"
#include "verbatim/model.h"

namespace verbatim {

/// How the logits of a given text are computed.
struct WholeLogitsOptions {
  /// The reading of the weights to evaluate with, by name ("full", "mxfp4-w4a8", ...); the model is loaded
  /// with its format.
  std::string reading = "full";
  /// How keys and values are stored.
  CacheOptions cache = {};
  /// The tokens that are evaluated in one pass, at least 1. Changes no bit of the result.
  int64_t prefill_chunk = 512;
  /// Threads to compute with; 0 takes one for every core that this process may use. Changes no bit of the
  /// result.
  int32_t threads = 0;
};

/// Computes the logits of the whole vocabulary for what follows each position of a given text, as
/// top_logits() does for the best tokens. Calls `visit` for every position in order, on the calling thread,
/// with Model::vocab_size() numbers that are gone when it returns. An exception of `visit` ends the
/// computation and goes on to the caller. A logit that is not usable, NaN for instance, is given as it is.
///
/// Throws Error(kBadInput) for no tokens, more tokens than the model's context and a token outside the
/// vocabulary; Error(kUsage) for options out of range, or when the model was loaded without the format of the
/// reading.
void whole_logits(const Model& model, std::span<const int32_t> tokens, const WholeLogitsOptions& options,
                  const std::function<void(int64_t position, std::span<const float> logits)>& visit);

}  // namespace verbatim
