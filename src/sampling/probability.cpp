#include "sampling/probability.h"

#include <cmath>

#include "base/error.h"
#include "sampling/logits.h"

namespace verbatim {

float probability(std::span<const float> logits, int32_t token) {
  if (token < 0 || static_cast<size_t>(token) >= logits.size()) {
    fail(ErrorKind::kUsage, "token {} lies outside the vocabulary of {} tokens", token, logits.size());
  }
  const float largest = largest_logit(logits);
  const float logit = logits[static_cast<size_t>(token)];
  if (!std::isfinite(largest)) return largest > 0.0f && logit == largest ? 1.0f : 0.0f;
  return static_cast<float>(softmax_weight(logit - largest) / softmax_total(logits, largest, 1.0f));
}

}  // namespace verbatim
