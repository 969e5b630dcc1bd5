#pragma once

#include <cstdint>
#include <vector>

namespace verbatim {

/// A token and the natural logarithm of its probability.
struct TokenLogprob {
  int32_t token = -1;
  double logprob = 0;

  bool operator==(const TokenLogprob&) const = default;
};

/// How likely the model held a token that came, and which tokens it held likeliest at that place. The
/// probabilities are the softmax of the model's own logits at temperature 1, before logit bias, filters and
/// penalty. They are computed from the logits of that place alone in a fixed order, so that a token that was
/// drafted, decoded plainly or scored has the same numbers, bit for bit.
struct ScoredToken {
  int32_t token = -1;
  double logprob = 0;
  /// The likeliest tokens, the best first and the smaller token first among equals; as many as were asked
  /// for, and fewer where the vocabulary or the model's usable logits are fewer.
  std::vector<TokenLogprob> top = {};

  bool operator==(const ScoredToken&) const = default;
};

/// The most entries that ScoredToken::top may be asked for.
inline constexpr int32_t kMostTopLogprobs = 64;

}  // namespace verbatim
