#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "sampling/gumbel.h"
#include "verbatim/sampling.h"

namespace verbatim::test {

/// `count` logits of a normal distribution, some of them equal to others when `steps` > 0 (multiples of 1 /
/// steps).
inline std::vector<float> random_logits(std::mt19937& random, size_t count, float spread, int steps = 0) {
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> logits(count);
  for (float& logit : logits) {
    logit = normal(random);
    if (steps > 0) logit = std::round(logit * static_cast<float>(steps)) / static_cast<float>(steps);
  }
  return logits;
}

/// The tokens above minus infinity, most likely first and the smaller token first among equals.
inline std::vector<int32_t> in_order(const std::vector<float>& logits) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > -std::numeric_limits<float>::infinity()) tokens.push_back(static_cast<int32_t>(i));
  }
  std::stable_sort(tokens.begin(), tokens.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  return tokens;
}

/// Probabilities relative to the first of `tokens`.
inline std::vector<double> weights_of(const std::vector<float>& logits, const std::vector<int32_t>& tokens,
                                      float temperature) {
  std::vector<double> weights;
  const double largest = logits[static_cast<size_t>(tokens.front())];
  for (const int32_t token : tokens) {
    weights.push_back(std::exp((logits[static_cast<size_t>(token)] - largest) / temperature));
  }
  return weights;
}

/// The filters as their definitions read: what is left after top-k, then top-p, then min-p, in order.
inline std::vector<int32_t> filtered(const std::vector<float>& logits, const SamplingOptions& options) {
  std::vector<int32_t> tokens = in_order(logits);
  if (options.top_k > 0) tokens.resize(std::min(tokens.size(), static_cast<size_t>(options.top_k)));
  const std::vector<double> weights = weights_of(logits, tokens, options.temperature);
  size_t kept = tokens.size();
  if (options.top_p < 1.0f) {
    const double target = options.top_p * std::accumulate(weights.begin(), weights.end(), 0.0);
    double sum = 0.0;
    for (kept = 0; kept < tokens.size() && sum < target; ++kept) sum += weights[kept];
  }
  while (kept > 1 && weights[kept - 1] < options.min_p) --kept;
  tokens.resize(kept);
  return tokens;
}

/// The sampler as its definition reads: every score of `tokens` computed, the largest taken.
inline int32_t best_of(const std::vector<float>& logits, const std::vector<int32_t>& tokens,
                       float temperature, NoisePlace place) {
  double best = -std::numeric_limits<double>::infinity();
  int32_t best_token = -1;
  for (const int32_t token : std::set<int32_t>(tokens.begin(), tokens.end())) {
    const double score =
        static_cast<double>(logits[static_cast<size_t>(token)]) / temperature + gumbel(place, token);
    if (score > best) {
      best = score;
      best_token = token;
    }
  }
  return best_token;
}

}  // namespace verbatim::test
