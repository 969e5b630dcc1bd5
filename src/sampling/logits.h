#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/lanes.h"

namespace verbatim {

/// The largest of `logits`, NaN left out; minus infinity when there is no other number.
float largest_logit(std::span<const float> logits);

/// The first token whose logit equals `value`, or the number of logits if there is none.
int32_t first_token_with(std::span<const float> logits, float value);

/// Whether some logit is at least `value`. The number of logits is a multiple of 16.
inline bool any_at_least(std::span<const float> logits, float value) {
  const FloatLanes bound = all_lanes(value);
  MaskLanes found{};
  for (size_t i = 0; i < logits.size(); i += kLaneCount) found |= load_lanes(logits.data() + i) >= bound;
  return any_lane(found);
}

/// Calls visit(token) in order for the tokens whose logit is at least the value of `threshold` at that
/// moment, and perhaps for some that lie just below.
template <typename Visit>
void visit_at_least(std::span<const float> logits, const float& threshold, Visit visit) {
  constexpr size_t kBlock = 32;
  size_t first = 0;
  for (; first + kBlock <= logits.size(); first += kBlock) {
    if (!any_at_least(logits.subspan(first, kBlock), threshold)) continue;
    for (size_t j = 0; j < kBlock; ++j) visit(first + j);
  }
  for (; first < logits.size(); ++first) visit(first);
}

/// The tokens of the `count` largest logits, the best first and the smaller token first among equals; fewer
/// where fewer logits are above minus infinity. NaN counts as minus infinity.
std::vector<int32_t> best_tokens(std::span<const float> logits, size_t count);

/// e^x for x <= 0, to about one part in ten million, exactly 1 at 0; 0 for NaN and below -87. Plain
/// arithmetic rather than std::exp, so that many are fast together and every machine finds the same bits.
float softmax_weight(float x);

/// weights[i] = softmax_weight((logits[i] - largest) / temperature).
void softmax_weights(std::span<const float> logits, float largest, float temperature,
                     std::span<float> weights);

/// The sum of softmax_weight((logit - largest) / temperature), in an order that depends on the number of
/// logits alone.
double softmax_total(std::span<const float> logits, float largest, float temperature);

}  // namespace verbatim
