#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/best_list.h"
#include "sampling/filters.h"
#include "sampling/noise.h"

namespace verbatim {

/// Standard Gumbel noise, -log(-log(u)): adding it to logit / temperature and taking the largest sum draws a
/// token with its softmax probability.
double gumbel(NoisePlace place, int32_t token);

/// The token with the largest logit / temperature + gumbel(place, token) among those that `cut` keeps, the
/// smaller one among equals. `likeliest` is the first token with the largest logit, which is finite. Computes
/// noise only where it could decide.
int32_t gumbel_argmax(std::span<const float> logits, float temperature, NoisePlace place, const Cut& cut,
                      int32_t likeliest);

/// How many of the best tokens gumbel_best() finds.
constexpr size_t kGumbelBest = 16;

/// Successive logits as gumbel_best() looks at them.
struct LogitBlock {
  float largest;   ///< of its logits
  uint32_t first;  ///< the token of the first one
};

/// The tokens with the largest logit / temperature + gumbel(place, token) among those that `cut` keeps, with
/// these scores. Tokens of NaN or minus infinity are never among them; plus infinity is not allowed. The
/// first is what gumbel_argmax() returns. `memory` is room to work in, which allocates only the first time.
BestList<kGumbelBest> gumbel_best(std::span<const float> logits, float temperature, NoisePlace place,
                                  const Cut& cut, std::vector<LogitBlock>& memory);

}  // namespace verbatim
