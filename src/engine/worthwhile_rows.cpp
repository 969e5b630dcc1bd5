#include "engine/worthwhile_rows.h"

#include <algorithm>
#include <numeric>

namespace verbatim {

namespace {

/// The longest drafts that the usual rate is computed for. A recipe's stop rule may allow fewer tokens.
constexpr int64_t kLongest = 16;

}  // namespace

double usual_rate(int64_t sequences, double kept, const SecondsOfRows& verifying,
                  const SecondsOfRows& drafting) {
  const auto count = static_cast<double>(sequences);
  double path = 1.0;
  double tokens = count;
  double best = tokens / verifying(sequences);
  if (!drafting) return best;
  const double pass = drafting(sequences);
  for (int64_t length = 1; length <= kLongest; ++length) {
    path *= kept;
    tokens += count * path;
    best =
        std::max(best, tokens / (verifying(sequences * (length + 1)) + static_cast<double>(length) * pass));
  }
  return best;
}

double usual_rate(int64_t sequences, double kept, const PassCosts& verifying, const PassCosts* drafting) {
  const auto by = [](const PassCosts& costs) -> SecondsOfRows {
    return [&costs](int64_t rows) { return costs.of_pass(rows); };
  };
  return usual_rate(sequences, kept, by(verifying), drafting != nullptr ? by(*drafting) : nullptr);
}

std::vector<int64_t> worthwhile_nodes(std::span<const std::span<const float>> offers, int64_t rows,
                                      double rate, const PassCosts& costs) {
  struct Node {
    float path;
    size_t sequence;
  };
  std::vector<Node> nodes;
  for (size_t i = 0; i < offers.size(); ++i) {
    for (const float path : offers[i]) nodes.push_back({path, i});
  }
  std::stable_sort(nodes.begin(), nodes.end(), [](const Node& a, const Node& b) { return a.path > b.path; });
  const double without = costs.of_pass(rows);
  double tokens = 0.0;
  double best = 0.0;
  size_t keep = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    tokens += nodes[i].path;
    const double gain = tokens - rate * (costs.of_pass(rows + static_cast<int64_t>(i) + 1) - without);
    if (gain <= best) continue;
    best = gain;
    keep = i + 1;
  }
  std::vector<int64_t> counts(offers.size());
  for (const Node& node : std::span(nodes).first(keep)) ++counts[node.sequence];
  return counts;
}

std::vector<bool> worthwhile_shares(std::span<const DraftingShare> shares, int64_t waiting, double rate,
                                    const PassCosts& drafting, const PassCosts& verifying) {
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return shares[a].tokens > shares[b].tokens; });
  int64_t verified = waiting;
  for (const DraftingShare& share : shares) verified += share.verified;
  const double without = verifying.of_pass(verified);
  double tokens = 0.0;
  double best = 0.0;
  int64_t rows = 0;
  size_t take = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    tokens += shares[order[i]].tokens;
    rows += shares[order[i]].rows;
    const double added = verifying.of_pass(verified + static_cast<int64_t>(i) + 1) - without;
    const double gain = tokens - rate * (drafting.of_pass(rows) + added);
    if (gain <= best) continue;
    best = gain;
    take = i + 1;
  }
  std::vector<bool> taken(shares.size());
  for (const size_t i : std::span(order).first(take)) taken[i] = true;
  return taken;
}

}  // namespace verbatim
