#include "sampling/log_probability.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/elementary.h"
#include "base/error.h"
#include "sampling/logits.h"

namespace verbatim {

namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

/// The logarithm of a logit's probability, where `largest` is the largest logit and `log_total` the logarithm
/// of the sum of all weights relative to it.
double log_probability(float logit, float largest, double log_total) {
  if (logit == largest) return -log_total;
  if (!(logit > kNone) || std::isinf(largest)) return -std::numeric_limits<double>::infinity();
  return static_cast<double>(logit) - static_cast<double>(largest) - log_total;
}

double log_total_of(std::span<const float> logits, float largest) {
  if (!std::isinf(largest)) return elementary::log(softmax_total(logits, largest, 1.0f));
  return elementary::log(static_cast<double>(std::count(logits.begin(), logits.end(), largest)));
}

}  // namespace

ScoredToken score_token(std::span<const float> logits, int32_t token, int32_t top) {
  const float largest = largest_logit(logits);
  if (largest == kNone) {
    bad_input("the model gave no usable logit: all {} are NaN or minus infinity; check its weights",
              logits.size());
  }
  const double log_total = log_total_of(logits, largest);
  const auto of = [&](int32_t t) {
    return log_probability(logits[static_cast<size_t>(t)], largest, log_total);
  };
  ScoredToken scored{.token = token, .logprob = of(token)};
  for (const int32_t best : best_tokens(logits, static_cast<size_t>(top))) {
    scored.top.push_back({best, of(best)});
  }
  return scored;
}

}  // namespace verbatim
