#pragma once

#include <cstdint>

namespace verbatim {

/// A token with which a drafter may continue a draft.
struct Guess {
  int32_t token;
  /// How sure the draft is that verification, which sees the same noise, will choose it: the softmax of
  /// logit + temperature · noise. At temperature 0 this is the token's probability.
  float confidence;
};

}  // namespace verbatim
