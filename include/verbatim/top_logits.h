#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "verbatim/cache.h"
#include "verbatim/model.h"

namespace verbatim {

/// A token and its logit, the number that the model's output matrix gives it.
struct TokenLogit {
  int32_t token = -1;
  float logit = 0;

  bool operator==(const TokenLogit&) const = default;
};

/// How the logits of a given text are computed.
struct TopLogitsOptions {
  /// The number of best tokens to name at every position, at least 1.
  int32_t top = 10;
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
  /// Called after every pass with the fraction done, from 0 to 1.
  std::function<void(double)> progress = {};
};

/// The best tokens to follow each position of a given text: element i of the result is about what comes after
/// tokens[i], given tokens[0] to tokens[i]. In an element the token with the largest logit comes first, and
/// the smaller token among equals. An element has as many tokens as were asked for, and fewer where the
/// vocabulary or the model's usable logits are fewer: a logit of NaN or minus infinity is left out. The text
/// is taken as it stands; no beginning-of-sequence token is added.
///
/// Throws Error(kBadInput) for no tokens, more tokens than the model's context, a token outside the
/// vocabulary, and a position without a usable logit; Error(kUsage) for options out of range, or when the
/// model was loaded without the format of the reading.
std::vector<std::vector<TokenLogit>> top_logits(const Model& model, std::span<const int32_t> tokens,
                                                const TopLogitsOptions& options = {});

}  // namespace verbatim
