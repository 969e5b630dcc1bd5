#pragma once

#include <span>
#include <vector>

namespace verbatim {

/// Up to so many values weighted_kmeans finds the optimum. Beyond, twice as many places would make a
/// column's error smaller by less than a ten-thousandth, and take two thirds more time.
constexpr int kExactPoints = 512;

/// Weighted k-means in one dimension (thesis eq. 3.5): at most k centroids, ascending, that minimise the sum
/// of weight × (value − nearest centroid)². `values` are ascending and distinct, `weights` are positive. Of
/// more than kExactPoints values, the cuts are searched among so many places and then moved to where they are
/// best (Lloyd). The same input gives the same bits. k ≥ 1.
std::vector<double> weighted_kmeans(std::span<const double> values, std::span<const double> weights, int k);

}  // namespace verbatim
