#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/decoder.h"
#include "verbatim/perplexity.h"

namespace verbatim {

/// A window over a text: tokens begin .. end - 1 are evaluated, and those from first_scored on are scored.
struct ScoringWindow {
  int64_t begin;
  int64_t first_scored;
  int64_t end;
};

/// Cuts a text into windows of up to `length` tokens that begin `stride` apart, 1 ≤ stride ≤ length, until
/// one reaches the end. Each scores what no window before it held. `past`: something stands before each
/// window, so that its first token can be scored; otherwise it is not.
std::vector<ScoringWindow> scoring_windows(int64_t tokens, int64_t length, int64_t stride, bool past);

/// The score of one token of a text: how likely a model held it, and how the prediction compares with another
/// prediction of the same token.
struct TokenScore {
  double nll = 0;         ///< -log of the probability of the token that came
  double excess_nll = 0;  ///< nll less that of the other prediction
  double overlap = 1;     ///< Σ min(p, q) with the other prediction
  double divergence = 0;  ///< Σ q log(q / p), the Kullback-Leibler divergence from the other, q, in nats
  bool same_best = true;  ///< both predictions have the same likeliest token
};

/// The score of one prediction, in double precision and an order of operations that is always the same.
/// `other`: the logits of another reading, or empty. The likeliest token is the lowest one of equals.
TokenScore score_prediction(std::span<const float> logits, int32_t token, std::span<const float> other);

/// How a text is evaluated to be scored.
struct Scoring {
  Scoring(Reading reading_) : reading(reading_) {}  // NOLINT(google-explicit-constructor): the usual case

  Reading reading;
  CacheOptions cache;
  CachePart cache_part = CachePart::kWhole;
  /// For what scores are compared with: another model than the one that is scored; or null.
  const Decoder* decoder = nullptr;
};

/// Scores the tokens of a text, in order, as measure_perplexity() describes. `beginning` is put before every
/// window. `length` and `stride` are those of scoring_windows(). With `other` every token is also
/// scored by a second evaluation, with which the first is compared.
std::vector<TokenScore> score_tokens(const Decoder& decoder, std::span<const int32_t> tokens,
                                     const std::vector<int32_t>& beginning, int64_t length, int64_t stride,
                                     const Scoring& scoring, const std::optional<Scoring>& other,
                                     ThreadTeam& team, const std::function<void(double)>& progress = {});

}  // namespace verbatim
