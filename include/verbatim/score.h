#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "verbatim/cache.h"
#include "verbatim/logprobs.h"
#include "verbatim/model.h"

namespace verbatim {

/// How a given text is scored.
struct ScoreOptions {
  /// The number of likeliest tokens to name at every place, from 0 to kMostTopLogprobs.
  int32_t top_logprobs = 0;
  /// The reading of the weights to score with, by name ("full", "mxfp4-w4a8", ...); the model is loaded with
  /// its format.
  std::string reading = "full";
  /// How keys and values are stored.
  CacheOptions cache = {};
  /// Threads to compute with; 0 takes one for every core that this process may use. Changes no bit of the
  /// result.
  int32_t threads = 0;
  /// Called after every pass with the fraction done, from 0 to 1.
  std::function<void(double)> progress = {};
};

/// Scores a given text: element i of the result is about tokens[i + 1], given tokens[0] to tokens[i]. The
/// first token has nothing before it and is not scored, so the result has one element less than `tokens`. The
/// text is evaluated in passes of many tokens, as a prompt is.
///
/// GenerateOptions::top_logprobs gives the same numbers for the same tokens, bit for bit.
///
/// Throws Error(kBadInput) for fewer than two tokens, more tokens than the model's context, a token outside
/// the vocabulary, and logits that are not usable; Error(kUsage) for options out of range, or when the model
/// was loaded without the format of the reading.
std::vector<ScoredToken> score(const Model& model, std::span<const int32_t> tokens,
                               const ScoreOptions& options = {});

}  // namespace verbatim
