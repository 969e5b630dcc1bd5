#pragma once

#include <cstdint>
#include <span>

namespace verbatim {

/// The softmax probability of `token` at temperature 1, without filters: how sure the model is of it. NaN
/// counts as minus infinity. Throws Error(kUsage) when the token lies outside the vocabulary.
float probability(std::span<const float> logits, int32_t token);

}  // namespace verbatim
