#include "formats/weighted_kmeans.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace verbatim {

namespace {

/// The most iterations. From a good start a handful suffice; the limit only guards against an endless loop.
constexpr int kMostIterations = 50;

/// The cuts between clusters, which are runs of neighbouring values: the first cut is 0 and the last the
/// number of values.
using Cuts = std::vector<size_t>;

/// The places where a cut may be: all places if they are few enough, else kExactPoints of them, chosen so
/// that no run between two of them has much of the values, of their range or of their weight.
Cuts possible_cuts(std::span<const double> values, std::span<const double> weights) {
  const size_t count = values.size();
  Cuts cuts = {0};
  if (count <= kExactPoints) {
    for (size_t i = 1; i <= count; ++i) cuts.push_back(i);
    return cuts;
  }
  double total = 0.0;
  for (const double weight : weights) total += weight;
  const double range = values.back() - values.front();
  const double per_cut = 3.0 / kExactPoints;
  double share = 0.0;
  for (size_t i = 1; i < count; ++i) {
    share += 1.0 / static_cast<double>(count) + (values[i] - values[i - 1]) / range + weights[i - 1] / total;
    if (share >= per_cut * static_cast<double>(cuts.size())) cuts.push_back(i);
  }
  cuts.push_back(count);
  return cuts;
}

/// Sums over the values before each possible cut, from which the error of any cluster follows at once.
/// They count from the middle value, and positions are relative to it, so that outliers, which are at the
/// ends, do not cost the sums of the others their digits.
struct RunningSums {
  std::vector<double> weight;
  std::vector<double> first;   // of weight × position
  std::vector<double> second;  // of weight × position²

  RunningSums(std::span<const double> values, std::span<const double> weights, const Cuts& cuts)
      : weight(cuts.size()), first(cuts.size()), second(cuts.size()) {
    const size_t middle = cuts.size() / 2;
    const double centre = values[cuts[middle]];
    const auto add = [&](size_t from, size_t to, size_t begin, size_t end, double sign) {
      double sums[3] = {};
      for (size_t i = begin; i < end; ++i) {
        const double position = values[i] - centre;
        sums[0] += weights[i];
        sums[1] += weights[i] * position;
        sums[2] += weights[i] * position * position;
      }
      weight[to] = weight[from] + sign * sums[0];
      first[to] = first[from] + sign * sums[1];
      second[to] = second[from] + sign * sums[2];
    };
    for (size_t j = middle; j + 1 < cuts.size(); ++j) add(j, j + 1, cuts[j], cuts[j + 1], 1.0);
    for (size_t j = middle; j > 0; --j) add(j, j - 1, cuts[j - 1], cuts[j], -1.0);
  }

  /// The error of one cluster from possible cut i to j.
  double error(size_t i, size_t j) const {
    const double sum = first[j] - first[i];
    return std::max(0.0, second[j] - second[i] - sum * sum / (weight[j] - weight[i]));
  }
};

/// Adds one more cluster: least[j] is the least error of the values before cut j, of[j] the beginning of its
/// last cluster. Beginnings are in the order of the ends, so each is searched between those of its neighbours
/// (divide and conquer).
struct Layer {
  const RunningSums& sums;
  const std::vector<double>& fewer;  // least errors with one cluster less
  std::vector<double>& least;
  std::vector<size_t>& of;

  void solve(size_t j, size_t low, size_t high) {
    double best = std::numeric_limits<double>::infinity();
    size_t best_begin = low;
    for (size_t i = low; i <= std::min(high, j - 1); ++i) {
      const double error = fewer[i] + sums.error(i, j);
      if (error < best) {
        best = error;
        best_begin = i;
      }
    }
    least[j] = best;
    of[j] = best_begin;
  }

  void solve_range(size_t begin, size_t end, size_t low, size_t high) {
    if (begin >= end) return;
    const size_t j = begin + (end - begin) / 2;
    solve(j, low, high);
    solve_range(begin, j, low, of[j]);
    solve_range(j + 1, end, of[j], high);
  }
};

/// The best k clusters with cuts at possible places.
Cuts best_cuts(const RunningSums& sums, const Cuts& possible, size_t k) {
  const size_t last = possible.size() - 1;
  std::vector<double> fewer(last + 1);
  std::vector<double> least(last + 1);
  std::vector<std::vector<size_t>> begins(k + 1, std::vector<size_t>(last + 1));
  for (size_t j = 1; j <= last; ++j) fewer[j] = sums.error(0, j);
  for (size_t clusters = 2; clusters <= k; ++clusters) {
    Layer layer{sums, fewer, least, begins[clusters]};
    // No cluster is empty, nor are those that will be added; the last layer has a single end.
    const size_t begin = clusters == k ? last : clusters;
    layer.solve_range(begin, last + 1, clusters - 1, last - 1);
    std::swap(fewer, least);
  }
  Cuts cuts(k + 1);
  size_t j = last;
  for (size_t clusters = k; clusters > 0; --clusters) {
    cuts[clusters] = possible[j];
    j = begins[clusters][j];
  }
  return cuts;
}

/// Lloyd's iterations over all values. The sums are fresh ones, so that no digit of a centroid is lost.
std::vector<double> refine(std::span<const double> values, std::span<const double> weights, Cuts cuts) {
  std::vector<double> centroids(cuts.size() - 1);
  for (int iteration = 0; iteration < kMostIterations; ++iteration) {
    for (size_t c = 0; c < centroids.size(); ++c) {
      if (cuts[c] == cuts[c + 1]) continue;  // lost all its values: stays where it was
      const double origin = values[cuts[c]];
      double weight = 0.0;
      double sum = 0.0;
      for (size_t i = cuts[c]; i < cuts[c + 1]; ++i) {
        weight += weights[i];
        sum += weights[i] * (values[i] - origin);
      }
      centroids[c] = origin + sum / weight;
    }
    bool moved = false;
    for (size_t c = 1; c < centroids.size(); ++c) {
      const double border = (centroids[c - 1] + centroids[c]) / 2;
      const auto above = std::upper_bound(values.begin(), values.end(), border);
      const auto cut = static_cast<size_t>(above - values.begin());
      moved = moved || cut != cuts[c];
      cuts[c] = cut;
    }
    if (!moved) break;
  }
  return centroids;
}

}  // namespace

std::vector<double> weighted_kmeans(std::span<const double> values, std::span<const double> weights, int k) {
  if (values.size() <= static_cast<size_t>(k)) return {values.begin(), values.end()};
  const Cuts possible = possible_cuts(values, weights);
  const RunningSums sums(values, weights, possible);
  return refine(values, weights, best_cuts(sums, possible, static_cast<size_t>(k)));
}

}  // namespace verbatim
