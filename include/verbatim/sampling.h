#pragma once

#include <cstdint>

namespace verbatim {

/// How the next token is chosen from the model's logits. The filters apply in the order of the fields.
struct SamplingOptions {
  /// Divides the logit of every token already in the sequence if positive, multiplies it if negative; 1 is
  /// off.
  float repetition_penalty = 1.0f;
  /// 0 takes the most likely token (the filters below then change nothing).
  float temperature = 0.0f;
  int32_t top_k = 0;   ///< keep only the k most likely tokens; 0 is off
  float top_p = 1.0f;  ///< keep the most likely tokens that together reach this probability; 1 is off
  float min_p = 0.0f;  ///< keep tokens at least this fraction as likely as the most likely one; 0 is off
  uint64_t seed = 0;   ///< the noise of a position depends on the seed, the position and the token alone
};

}  // namespace verbatim
