#include "formats/weighted_kmeans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace verbatim {
namespace weighted_kmeans_test {
namespace {

struct Points {
  std::vector<double> values;
  std::vector<double> weights;
};

/// Student's t with 3 degrees of freedom has heavy tails; weights span several orders of magnitude.
Points random_points(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::student_t_distribution<double> value(3.0);
  std::lognormal_distribution<double> weight(0.0, 2.0);
  Points points;
  for (size_t i = 0; i < count; ++i) {
    points.values.push_back(value(generator));
    points.weights.push_back(weight(generator));
  }
  std::sort(points.values.begin(), points.values.end());
  return points;
}

double error_of(const Points& points, const std::vector<double>& centroids) {
  double error = 0.0;
  for (size_t i = 0; i < points.values.size(); ++i) {
    double nearest = std::numeric_limits<double>::infinity();
    for (const double c : centroids) nearest = std::min(nearest, std::abs(points.values[i] - c));
    error += points.weights[i] * nearest * nearest;
  }
  return error;
}

/// The error of the values begin .. end - 1 as one cluster.
double error_of_run(const Points& points, size_t begin, size_t end) {
  double weight = 0.0;
  double sum = 0.0;
  for (size_t i = begin; i < end; ++i) {
    weight += points.weights[i];
    sum += points.weights[i] * points.values[i];
  }
  double error = 0.0;
  for (size_t i = begin; i < end; ++i)
    error += points.weights[i] * std::pow(points.values[i] - sum / weight, 2);
  return error;
}

/// The least error over every way to cut the values into k runs, without any shortcut.
double least_error(const Points& points, size_t k) {
  const size_t count = points.values.size();
  std::vector<std::vector<double>> runs(count + 1, std::vector<double>(count + 1));
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = i + 1; j <= count; ++j) runs[i][j] = error_of_run(points, i, j);
  }
  std::vector<double> least = runs[0];
  least[0] = 0.0;
  for (size_t clusters = 2; clusters <= k; ++clusters) {
    std::vector<double> next(count + 1);
    for (size_t j = 1; j <= count; ++j) {
      next[j] = least[j];
      for (size_t i = 1; i < j; ++i) next[j] = std::min(next[j], least[i] + runs[i][j]);
    }
    least = next;
  }
  return least[count];
}

TEST(WeightedKmeans, IsTheBestOfAllAssignments) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const Points points = random_points(8, seed);
    double least = std::numeric_limits<double>::infinity();
    for (uint32_t assignment = 0; assignment < 6561; ++assignment) {  // 3^8
      double weight[3] = {};
      double sum[3] = {};
      uint32_t rest = assignment;
      for (size_t i = 0; i < 8; ++i, rest /= 3) {
        weight[rest % 3] += points.weights[i];
        sum[rest % 3] += points.weights[i] * points.values[i];
      }
      std::vector<double> centroids;
      for (int c = 0; c < 3; ++c) {
        if (weight[c] > 0.0) centroids.push_back(sum[c] / weight[c]);
      }
      least = std::min(least, error_of(points, centroids));
    }
    EXPECT_NEAR(error_of(points, weighted_kmeans(points.values, points.weights, 3)), least, 1e-12 * least);
  }
}

TEST(WeightedKmeans, FindsTheOptimumOfColumns) {
  for (const int k : {1, 2, 8, 16}) {
    for (const size_t count : {17u, 60u, 200u}) {
      const Points points = random_points(count, static_cast<uint32_t>(count) + 7);
      const double least = least_error(points, static_cast<size_t>(k));
      EXPECT_NEAR(error_of(points, weighted_kmeans(points.values, points.weights, k)), least, 1e-9 * least)
          << k << " of " << count;
    }
  }
}

TEST(WeightedKmeans, IsNearTheOptimumBeyondTheExactSearch) {
  const Points points = random_points(3 * kExactPoints / 2, 3);
  for (const int k : {8, 16}) {
    const double least = least_error(points, static_cast<size_t>(k));
    const double error = error_of(points, weighted_kmeans(points.values, points.weights, k));
    EXPECT_LE(error, 1.001 * least);
    EXPECT_GE(error, (1.0 - 1e-9) * least);
  }
}

TEST(WeightedKmeans, FewValuesAreTheirOwnCentroids) {
  EXPECT_TRUE(weighted_kmeans({}, {}, 8).empty());
  const Points points = random_points(8, 5);
  EXPECT_EQ(weighted_kmeans(points.values, points.weights, 8), points.values);
  EXPECT_EQ(weighted_kmeans(points.values, points.weights, 16), points.values);
}

TEST(WeightedKmeans, FarOutliersDoNotHideTheRest) {
  Points points = random_points(100, 11);
  const double least = least_error(points, 6);
  // One cluster each; six are left for the others.
  points.values.insert(points.values.begin(), -1e9);
  points.values.push_back(1e9);
  points.weights.insert(points.weights.begin(), 1e6);
  points.weights.push_back(1e6);
  const std::vector<double> centroids = weighted_kmeans(points.values, points.weights, 8);
  EXPECT_EQ(centroids.front(), -1e9);
  EXPECT_EQ(centroids.back(), 1e9);
  EXPECT_NEAR(error_of(points, centroids), least, 1e-6 * least);
}

TEST(WeightedKmeans, FarFromZeroIsNoWorse) {
  Points points = random_points(100, 12);
  for (double& value : points.values) value += 1e6;
  const double least = least_error(points, 8);
  EXPECT_NEAR(error_of(points, weighted_kmeans(points.values, points.weights, 8)), least, 1e-6 * least);
}

}  // namespace
}  // namespace weighted_kmeans_test
}  // namespace verbatim
