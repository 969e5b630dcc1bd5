#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verbatim/cache.h"
#include "verbatim/model.h"

namespace verbatim {

/// How the perplexity of a text is measured.
struct PerplexityOptions {
  /// The reading to measure, by name ("full", "mxfp4-w4a8", ...); the model is loaded with its format.
  std::string reading = "full";
  /// How keys and values are stored.
  CacheOptions cache = {};
  /// Reads only the upper halves of the codes of keys and values, as a draft does (QuantSpec §4.2).
  bool draft_cache = false;
  /// Another reading to compare each prediction with, with keys and values in BF16; empty: none. Costs a
  /// second evaluation of every window.
  std::string compare_with = {};
  /// Another model with the same vocabulary; `compare_with` then names a reading of it, such as `full`. With
  /// null the reading is one of this model. The other model must live as long as the measurement.
  const Model* compare_model = nullptr;
  /// Tokens of a window, a beginning-of-sequence token included; 0 takes the model's context, 1024 at most.
  int64_t window = 0;
  /// Tokens from the beginning of a window to the beginning of the next; 0: the windows lie side by side.
  /// With a smaller stride windows overlap, and each scores only the tokens that no earlier window held.
  int64_t stride = 0;
  /// How many tokens of the text are measured, from its beginning; 0 takes all.
  int64_t max_tokens = 0;
  /// Threads to compute with; 0 takes one for every core that this process may use. Changes no bit of the
  /// result.
  int32_t threads = 0;
  /// Called after every pass with the fraction done, from 0 to 1.
  std::function<void(double)> progress = {};
};

/// How well a model predicts a text.
struct PerplexityResult {
  std::string reading;         ///< as asked for
  std::string resolved;        ///< what it means for this model: "bf16" for "full" of a BF16 model
  double bits_per_weight = 0;  ///< stored bits that the reading reads per weight of the matrices
  int64_t window = 0;          ///< tokens of a window, as used
  int64_t stride = 0;          ///< tokens between the beginnings of windows, as used
  int64_t windows = 0;         ///< windows evaluated
  int64_t text_bytes = 0;      ///< bytes of the whole text
  int64_t text_tokens = 0;     ///< tokens of the whole text, without a beginning-of-sequence token
  int64_t tokens = 0;          ///< tokens scored

  double mean_nll = 0;        ///< mean negative log likelihood of the tokens scored, in nats
  double standard_error = 0;  ///< of the mean, as if tokens were independent of each other
  double perplexity = 0;      ///< exp(mean_nll)
  /// Bits that the model needs per byte of text: mean_nll / ln 2 × text_tokens / text_bytes. Unlike the
  /// perplexity it compares models with different vocabularies.
  double bits_per_byte = 0;

  /// With compare_with: mean_nll less the other reading's.
  double excess_nll = 0;
  /// With compare_with: the standard error of excess_nll, which is far smaller than that of either mean,
  /// because the two readings are right and wrong about the same tokens.
  double excess_standard_error = 0;
  /// With compare_with: the share of tokens for which both readings hold the same token likeliest.
  double agreement = 0;
  /// With compare_with: the mean of Σ min(p, q) over the two predictions p and q of each token.
  double overlap = 0;
  /// With compare_with: the mean Kullback-Leibler divergence Σ q log(q / p) from the other reading's
  /// prediction q, in nats: the most telling comparison, as it does not depend on which token came.
  double divergence = 0;
  /// With compare_with: the standard error of the divergence.
  double divergence_standard_error = 0;
  /// Time of the evaluation, without loading.
  double seconds = 0;
};

/// Measures how well a model predicts a text. The text is encoded whole, special tokens written out in it
/// being plain text, and cut into windows. Every window is evaluated from an empty cache behind the
/// beginning-of-sequence token if the model wants one; without it the first token of a window that begins
/// where the one before ended has no past and is not scored. Log probabilities are computed from the logits
/// in double precision.
///
/// Throws Error(kBadInput) for text that is empty, no UTF-8 or shorter than two tokens, for a window that
/// does not fit the model or a stride that does not fit the window, for a model to compare with whose
/// vocabulary is another, and when the model gives a token no finite log probability; Error(kUsage) when the
/// model was loaded without the format of a reading, and when compare_model is given without compare_with.
PerplexityResult measure_perplexity(const Model& model, std::string_view text,
                                    const PerplexityOptions& options = {});

/// The negative log likelihood of each token of a sequence under the model's own weights, in nats, computed
/// as measure_perplexity() does: element i is about tokens[i + 1], given tokens[0] to tokens[i]. Fewer than
/// two tokens have none. score() gives log-probabilities as generation does, whose last bits can differ.
/// `threads` 0 takes one for every core that this process may use, and changes no bit of the result.
///
/// Throws Error(kBadInput) for more tokens than the model's context and for a token outside the vocabulary.
std::vector<double> negative_log_likelihoods(const Model& model, std::span<const int32_t> tokens,
                                             int32_t threads = 0);

}  // namespace verbatim
