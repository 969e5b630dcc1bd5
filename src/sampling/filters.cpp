#include "sampling/filters.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/elementary.h"
#include "sampling/logits.h"

namespace verbatim {

namespace {

bool comes_before(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

/// Leaves the k first candidates in `memory`, the last of them at the end.
void keep_top_k(std::span<const float> logits, size_t k, std::vector<Candidate>& memory) {
  const auto shrink = [&] {
    std::nth_element(memory.begin(), memory.begin() + static_cast<ptrdiff_t>(k) - 1, memory.end(),
                     comes_before);
    memory.resize(k);
  };
  // Candidates pile up to a multiple of k before the selection, so that it costs little for each of them;
  // after it only a logit above the k-th best can matter, since an equal one would belong to a later token.
  const size_t pile = std::max<size_t>(4 * k, 256);
  float threshold = -std::numeric_limits<float>::infinity();
  visit_at_least(logits, threshold, [&](size_t token) {
    if (!(logits[token] > threshold)) return;
    memory.push_back({logits[token], 0.0f, static_cast<int32_t>(token)});
    if (memory.size() < pile) return;
    shrink();
    threshold = memory.back().logit;
  });
  if (memory.size() > k) shrink();
}

/// Narrows down where the running sum of weights reaches `target`: puts the candidates of one narrow range of
/// logits in front, and returns the sum of those before it. A pass over buckets costs much less than
/// comparing.
double narrow(std::vector<Candidate>& candidates, double target) {
  constexpr size_t kBuckets = 512;
  float highest = candidates.front().logit;
  float lowest = highest;
  for (const Candidate& candidate : candidates) {
    highest = std::max(highest, candidate.logit);
    lowest = std::min(lowest, candidate.logit);
  }
  if (highest == lowest) return 0.0;
  const double scale = (kBuckets - 1) / (static_cast<double>(highest) - lowest);
  const auto bucket_of = [&](float logit) {
    return static_cast<size_t>((static_cast<double>(highest) - logit) * scale);
  };
  std::array<double, kBuckets> sums{};
  for (const Candidate& candidate : candidates) sums[bucket_of(candidate.logit)] += candidate.weight;
  const size_t last = bucket_of(lowest);
  double before = 0.0;
  size_t bucket = 0;
  while (bucket < last && before + sums[bucket] < target) before += sums[bucket++];
  std::erase_if(candidates, [&](const Candidate& candidate) { return bucket_of(candidate.logit) != bucket; });
  return before;
}

/// The last of the fewest first candidates whose weights reach `target`. Uses them up.
Candidate last_to_reach(std::vector<Candidate>& candidates, double target) {
  constexpr size_t kMany = 1024;
  constexpr ptrdiff_t kFew = 32;
  double before = candidates.size() > kMany ? narrow(candidates, target) : 0.0;
  auto begin = candidates.begin();
  auto end = candidates.end();
  while (end - begin > kFew) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, comes_before);
    double half = 0.0;
    for (auto candidate = begin; candidate != middle; ++candidate) half += candidate->weight;
    if (before + half >= target) {
      end = middle;
    } else {
      before += half;
      begin = middle;
    }
  }
  std::sort(begin, end, comes_before);
  for (auto candidate = begin; candidate != end; ++candidate) {
    before += candidate->weight;
    if (before >= target) return *candidate;
  }
  return *(end - 1);
}

/// Puts into `memory` the tokens that could be among those reaching probability `top_p`, and returns the sum
/// of the weights of all tokens.
double gather_for_top_p(std::span<const float> logits, float largest, const SamplingOptions& options,
                        std::vector<Candidate>& memory) {
  const double total = softmax_total(logits, largest, options.temperature);
  // Tokens lighter than this weigh less than half of what may be left out, even all together.
  const double negligible =
      0.5 * (1.0 - static_cast<double>(options.top_p)) * total / static_cast<double>(logits.size());
  const auto threshold =
      static_cast<float>(static_cast<double>(largest) + options.temperature * elementary::log(negligible));
  visit_at_least(logits, threshold, [&](size_t token) {
    if (!(logits[token] >= threshold)) return;
    memory.push_back({logits[token], 0.0f, static_cast<int32_t>(token)});
  });
  return total;
}

Cut tighter(const Cut& a, const Cut& b) {
  return a.keeps(b.logit, b.token) ? b : a;
}

}  // namespace

Cut find_cut(std::span<const float> logits, float largest, const SamplingOptions& options,
             std::vector<Candidate>& memory) {
  Cut cut;
  const bool use_top_k = options.top_k > 0 && static_cast<size_t>(options.top_k) < logits.size();
  const bool use_top_p = options.top_p < 1.0f;
  if (use_top_k || use_top_p) {
    memory.clear();
    memory.reserve(logits.size());
  }
  if (use_top_k) {
    keep_top_k(logits, static_cast<size_t>(options.top_k), memory);
    const auto last = std::max_element(memory.begin(), memory.end(), comes_before);
    cut = {last->logit, last->token};
  }
  if (use_top_p) {
    double total = use_top_k ? 0.0 : gather_for_top_p(logits, largest, options, memory);
    for (Candidate& candidate : memory) {
      candidate.weight = softmax_weight((candidate.logit - largest) / options.temperature);
      if (use_top_k) total += candidate.weight;
    }
    const Candidate last = last_to_reach(memory, static_cast<double>(options.top_p) * total);
    cut = tighter(cut, {last.logit, last.token});
  }
  if (options.min_p > 0.0f) {
    const double lowest =
        static_cast<double>(largest) + options.temperature * elementary::log(double{options.min_p});
    cut = tighter(cut, {static_cast<float>(lowest), std::numeric_limits<int32_t>::max()});
  }
  return cut;
}

}  // namespace verbatim
