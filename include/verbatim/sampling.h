#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace verbatim {

/// A number that is added to the logit of a token.
struct LogitBias {
  int32_t token = 0;
  /// Finite, or minus infinity, which rules the token out.
  float bias = 0.0f;

  bool operator==(const LogitBias&) const = default;
};

/// How the next token is chosen from the model's logits. Settings apply in the order of the fields; a
/// TokenFilter applies between the logit bias and the repetition penalty.
struct SamplingOptions {
  /// Biases that are added to the model's logits; several biases of one token add up in their order.
  std::vector<LogitBias> logit_bias = {};
  /// Divides the logit of every token already in the sequence if positive, multiplies it if negative; 1 is
  /// off.
  float repetition_penalty = 1.0f;
  /// Is subtracted from the logit of every token that was generated, the prompt's left out; 0 is off.
  float presence_penalty = 0.0f;
  /// Is subtracted from the logit of a token as many times as it was generated, the prompt's left out; 0 is
  /// off.
  float frequency_penalty = 0.0f;
  /// Divides the logits; 0 takes the likeliest token, whatever the settings below are.
  float temperature = 0.0f;
  int32_t top_k = 0;   ///< keeps only the k likeliest tokens; 0 is off
  float top_p = 1.0f;  ///< keeps the likeliest tokens that together reach this probability; 1 is off
  float min_p = 0.0f;  ///< keeps tokens at least this fraction as likely as the likeliest one; 0 is off
  uint64_t seed = 0;   ///< the noise of a position depends on the seed, the position and the token alone
};

/// Says which tokens may come next. `generated` are the tokens that this call has generated so far, in the
/// text or in a draft of it. `allowed` has one element for each token of the vocabulary, all of them 1 when
/// the filter is called; the filter sets the elements of forbidden tokens to 0.
///
/// A filter must say the same for the same `generated` whenever it is asked: it is asked for drafts too, for
/// a place more than once, and in no particular order. Then text with drafts is the text without. At least
/// one token must stay allowed, for example the end of the sequence; Error(kUsage) ends the generation
/// otherwise. An Engine asks on a thread of its own, and one request at most once at a time.
using TokenFilter = std::function<void(std::span<const int32_t> generated, std::span<uint8_t> allowed)>;

}  // namespace verbatim
