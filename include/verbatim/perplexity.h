#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "verbatim/cache.h"
#include "verbatim/model.h"

namespace verbatim {

struct PerplexityOptions {
  /// The reading to measure, by name ("full", "mxfp4-w4a8", ...); the model is loaded with its format.
  std::string reading = "full";
  /// How keys and values are stored,
  CacheOptions cache = {};
  /// and whether only the upper halves of their codes are read, as a draft does (QuantSpec §4.2).
  bool draft_cache = false;
  /// Another reading to compare each prediction with, or empty; with keys and values in BF16. Costs a
  /// second evaluation of every window.
  std::string compare_with;
  /// Tokens of a window, a beginning-of-sequence token included; 0 takes the model's context, 1024 at most.
  int64_t window = 0;
  /// Tokens from the beginning of a window to that of the next; 0: the windows lie side by side. Smaller ones
  /// overlap, and of all windows but the first only the tokens that no window before has had are scored.
  int64_t stride = 0;
  /// The first so many tokens of the text only; 0 takes all.
  int64_t max_tokens = 0;
  /// Threads to compute with; 0 takes every processor this process may run on. Changes no bit of the result.
  int32_t threads = 0;
  /// Called after every pass with the fraction done, from 0 to 1.
  std::function<void(double)> progress = {};
};

struct PerplexityResult {
  std::string reading;         ///< as asked for
  std::string resolved;        ///< what it means for this model: "bf16" for "full" of a BF16 model
  double bits_per_weight = 0;  ///< stored bits that the reading reads per weight of the matrices
  int64_t window = 0;          ///< as used
  int64_t stride = 0;
  int64_t windows = 0;
  int64_t text_bytes = 0;   ///< of the whole text
  int64_t text_tokens = 0;  ///< likewise, without a beginning-of-sequence token
  int64_t tokens = 0;       ///< tokens scored

  double mean_nll = 0;        ///< mean negative log likelihood of the tokens scored, in nats
  double standard_error = 0;  ///< of the mean, as if tokens were independent of each other
  double perplexity = 0;      ///< exp(mean_nll)
  /// Bits that the model needs per byte of text: mean_nll / ln 2 × text_tokens / text_bytes. Unlike the
  /// perplexity it compares models with different vocabularies.
  double bits_per_byte = 0;

  /// With compare_with only, like all but the last of what follows: mean_nll less that of the other reading,
  /// and the standard error of the mean difference, which is far smaller than that of either: the two are
  /// right and wrong about the same tokens.
  double excess_nll = 0;
  double excess_standard_error = 0;
  double agreement = 0;  ///< the share of tokens for which both readings hold the same one likeliest
  double overlap = 0;    ///< the mean of Σ min(p, q) over the two predictions
  /// The mean of Σ q log(q / p), q being the other reading's prediction, in nats (the divergence of Kullback
  /// and Leibler), and its standard error: the most telling of all, as it does not depend on which token
  /// came.
  double divergence = 0;
  double divergence_standard_error = 0;
  double seconds = 0;  ///< for the evaluation, without loading
};

/// Measures how well a model predicts a text. The text is encoded whole, special tokens written out in it
/// being plain text, and cut into windows. Every window is evaluated from an empty cache behind the
/// beginning-of-sequence token if the model wants one; without it the first token of a window that begins
/// where the one before ended has no past and is not scored. Log probabilities are computed from the logits
/// in double precision.
///
/// Throws Error(kBadInput) for text that is empty, no UTF-8 or shorter than two tokens, for a window that
/// does not fit the model or a stride that does not fit the window, and when the model gives a token no
/// finite log probability; Error(kUsage) when the model was loaded without the format of a reading.
PerplexityResult measure_perplexity(const Model& model, std::string_view text,
                                    const PerplexityOptions& options = {});

}  // namespace verbatim
