#pragma once

#include <span>
#include <vector>

namespace verbatim {

/// The largest number of values for which weighted_kmeans() finds the optimum, and the number of places that
/// it searches among more values. Twice as many places would reduce the error of a column by less than a
/// ten-thousandth and take two thirds more time.
constexpr int kExactPoints = 512;

/// Weighted k-means in one dimension (thesis eq. 3.5): finds at most k ≥ 1 centroids, ascending, that
/// minimise the sum of weight × (value − nearest centroid)². `values` are ascending and distinct, `weights`
/// are positive. With more than kExactPoints values, the cuts between clusters are first searched among
/// kExactPoints places and then improved over all values (Lloyd's iteration). The same input gives the same
/// bits.
std::vector<double> weighted_kmeans(std::span<const double> values, std::span<const double> weights, int k);

}  // namespace verbatim
