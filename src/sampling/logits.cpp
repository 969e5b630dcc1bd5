#include "sampling/logits.h"

#include <algorithm>
#include <limits>

namespace verbatim {

namespace {

// Several independent partial results hide the latency of an addition or comparison.
constexpr size_t kPartials = 4;
constexpr size_t kStep = kPartials * kLaneCount;

/// From here on sorting all logits is quicker than keeping the best ones in order.
constexpr size_t kManyBest = 128;

FloatLanes larger(FloatLanes a, FloatLanes b) {
  return a > b ? a : b;
}  // b where a is NaN

/// softmax_weight in every lane.
inline FloatLanes weights_of(FloatLanes x) {
  const FloatLanes lowest = all_lanes(-87.0f);
  const FloatLanes shift =
      all_lanes(12582912.0f);  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const MaskLanes counts = x >= lowest;
  const FloatLanes clamped = counts ? x : lowest;
  const FloatLanes shifted = clamped * 1.44269504f + shift;
  const FloatLanes power = shifted - shift;
  // ln 2 in two parts: the first has few enough bits that its product with `power` is exact.
  const FloatLanes r = (clamped - power * 0.693359375f) + power * 2.12194440e-4f;
  FloatLanes sum = all_lanes(1.0f / 5040);
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  const auto exponent = reinterpret_cast<WordLanes>(shifted) - reinterpret_cast<WordLanes>(shift) + 127u;
  const auto weight = sum * reinterpret_cast<FloatLanes>(exponent << 23);
  return counts ? weight : FloatLanes{};
}

}  // namespace

float largest_logit(std::span<const float> logits) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  FloatLanes partial[kPartials] = {all_lanes(kNone), all_lanes(kNone), all_lanes(kNone), all_lanes(kNone)};
  size_t i = 0;
  for (; i + kStep <= logits.size(); i += kStep) {
    for (size_t p = 0; p < kPartials; ++p) {
      partial[p] = larger(load_lanes(logits.data() + i + p * kLaneCount), partial[p]);
    }
  }
  const FloatLanes best = larger(larger(partial[0], partial[1]), larger(partial[2], partial[3]));
  float largest = std::max({best[0], best[1], best[2], best[3]});
  for (; i < logits.size(); ++i) largest = logits[i] > largest ? logits[i] : largest;
  return largest;
}

int32_t first_token_with(std::span<const float> logits, float value) {
  const FloatLanes wanted = all_lanes(value);
  size_t i = 0;
  for (; i + kStep <= logits.size(); i += kStep) {
    MaskLanes found{};
    for (size_t j = 0; j < kStep; j += kLaneCount) found |= load_lanes(logits.data() + i + j) == wanted;
    if (any_lane(found)) break;
  }
  while (i < logits.size() && logits[i] != value) ++i;
  return static_cast<int32_t>(i);
}

std::vector<int32_t> best_tokens(std::span<const float> logits, size_t count) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  std::vector<int32_t> best;
  if (count == 0) return best;
  const auto better = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)];
    const float y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  };
  if (count >= kManyBest) {
    for (size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] > kNone) best.push_back(static_cast<int32_t>(i));
    }
    const size_t kept = std::min(count, best.size());
    std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(kept), best.end(), better);
    best.resize(kept);
    return best;
  }
  float threshold = kNone;
  visit_at_least(logits, threshold, [&](size_t i) {
    const auto token = static_cast<int32_t>(i);
    if (!(logits[i] > threshold)) return;
    best.insert(std::upper_bound(best.begin(), best.end(), token, better), token);
    if (best.size() > count) best.pop_back();
    if (best.size() == count) threshold = logits[static_cast<size_t>(best.back())];
  });
  return best;
}

float softmax_weight(float x) {
  return weights_of(all_lanes(x))[0];
}

double softmax_total(std::span<const float> logits, float largest, float temperature) {
  using DoubleLanes [[gnu::vector_size(16)]] = double;
  DoubleLanes partial[kPartials] = {};
  size_t i = 0;
  for (; i + kStep / 2 <= logits.size(); i += kStep / 2) {
    for (size_t p = 0; p < kPartials; p += 2) {
      const FloatLanes logit = load_lanes(logits.data() + i + p / 2 * kLaneCount);
      const FloatLanes weight = weights_of((logit - largest) / temperature);
      partial[p] += DoubleLanes{weight[0], weight[1]};
      partial[p + 1] += DoubleLanes{weight[2], weight[3]};
    }
  }
  double total = 0.0;
  for (const DoubleLanes sum : partial) total += sum[0] + sum[1];
  for (; i < logits.size(); ++i) total += softmax_weight((logits[i] - largest) / temperature);
  return total;
}

void softmax_weights(std::span<const float> logits, float largest, float temperature,
                     std::span<float> weights) {
  size_t i = 0;
  for (; i + kLaneCount <= logits.size(); i += kLaneCount) {
    const FloatLanes lanes = weights_of((load_lanes(logits.data() + i) - largest) / temperature);
    std::memcpy(weights.data() + i, &lanes, sizeof lanes);
  }
  for (; i < logits.size(); ++i) weights[i] = softmax_weight((logits[i] - largest) / temperature);
}

}  // namespace verbatim
