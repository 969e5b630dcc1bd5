#include "formats/sparse_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/float16.h"
#include "support/random.h"
#include "verbatim/error.h"

namespace verbatim {
namespace sparse_split_test {
namespace {

constexpr int64_t kColumns = 100;
constexpr int64_t kK = 400;
constexpr size_t kCount = kColumns * kK;

MatrixRows rows_of(const std::vector<float>& matrix) {
  return [&matrix](int64_t column, std::span<float> row) {
    std::copy_n(matrix.begin() + column * kK, kK, row.begin());
  };
}

SparseThresholds thresholds_of(const std::vector<float>& weights, const std::vector<float>& sensitivities,
                               const SparseFractions& fractions = {}, int threads = 1) {
  ThreadTeam team(threads);
  return sparse_thresholds(kColumns, kK, rows_of(weights),
                           sensitivities.empty() ? MatrixRows() : rows_of(sensitivities), fractions, team);
}

int64_t count_chosen(const std::vector<float>& weights, const std::vector<float>& sensitivities,
                     const SparseFractions& fractions = {}) {
  const std::vector<uint8_t> chosen =
      choose_sparse(weights, sensitivities, thresholds_of(weights, sensitivities, fractions));
  EXPECT_EQ(chosen.size(), weights.size());
  return std::count(chosen.begin(), chosen.end(), 1);
}

/// As random_floats, but no two of the same magnitude: |N(0, 1)| with its place in the lowest bits.
std::vector<float> distinct_floats(uint32_t seed) {
  std::vector<float> values = test::random_floats(kCount, seed);
  std::sort(values.begin(), values.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  for (size_t i = 1; i < values.size(); ++i) {
    const float least = std::nextafter(std::fabs(values[i - 1]), 1e9f);
    if (std::fabs(values[i]) < least) values[i] = std::copysign(least, values[i]);
  }
  std::shuffle(values.begin(), values.end(), std::mt19937(seed));
  return values;
}

std::vector<float> squares_of(const std::vector<float>& values) {
  std::vector<float> squares;
  squares.reserve(values.size());
  for (const float v : values) squares.push_back(1e-6f * v * v);
  return squares;
}

TEST(SparseSplit, SelectsTheFractionsAskedFor) {
  const std::vector<float> weights = distinct_floats(1);
  const std::vector<float> sensitivities = distinct_floats(2);
  std::vector<float> absolute;
  absolute.reserve(kCount);
  for (const float s : sensitivities) absolute.push_back(std::fabs(s));
  EXPECT_EQ(count_chosen(weights, {}), 180);  // 0.45 % of 40 000
  EXPECT_EQ(count_chosen(weights, absolute), 180);
  EXPECT_EQ(count_chosen(weights, absolute, {.sensitive = 0.0, .outliers = 0.004}), 160);
  EXPECT_EQ(count_chosen(weights, absolute, {.sensitive = 0.0005, .outliers = 0.0}), 20);
  EXPECT_EQ(count_chosen(weights, {}, {.sensitive = 0.25, .outliers = 0.25}), 20'000);
}

TEST(SparseSplit, WithoutSensitivitiesTheLargestAreChosen) {
  const std::vector<float> weights = distinct_floats(3);
  const std::vector<uint8_t> chosen = choose_sparse(weights, {}, thresholds_of(weights, {}));
  float smallest_chosen = std::numeric_limits<float>::infinity();
  float largest_left = 0.0f;
  for (size_t i = 0; i < kCount; ++i) {
    const float magnitude = std::fabs(weights[i]);
    if (chosen[i] != 0) smallest_chosen = std::min(smallest_chosen, magnitude);
    if (chosen[i] == 0) largest_left = std::max(largest_left, magnitude);
  }
  EXPECT_LT(largest_left, smallest_chosen);
}

TEST(SparseSplit, SensitiveWeightsAreNotAlsoCountedAsOutliers) {
  const std::vector<float> weights = distinct_floats(4);
  const std::vector<float> sensitivities = squares_of(weights);  // the most sensitive are the largest
  EXPECT_NEAR(static_cast<double>(count_chosen(weights, sensitivities)), 180.0, 1.0);
}

TEST(SparseSplit, ZeroFractionsKeepEverythingDense) {
  const std::vector<float> weights = test::random_floats(kCount, 5);
  EXPECT_EQ(count_chosen(weights, {}, {.sensitive = 0.0, .outliers = 0.0}), 0);
  EXPECT_EQ(count_chosen(weights, squares_of(weights), {.sensitive = 0.0, .outliers = 0.0}), 0);
}

TEST(SparseSplit, RoundedWeightsTieNearTheThreshold) {
  std::vector<float> weights = test::random_floats(kCount, 6);
  for (float& w : weights) w = to_float(to_bfloat16(w));
  const int64_t count = count_chosen(weights, {});
  EXPECT_LE(count, 180);
  EXPECT_GE(count, 165);  // neighbours in BF16 are 0.8 % apart, and there are about ten weights to each
}

TEST(SparseSplit, TiesDoNotSelectTooMany) {
  EXPECT_EQ(count_chosen(std::vector<float>(kCount, 0.0f), {}), 0);
  EXPECT_EQ(count_chosen(std::vector<float>(kCount, -0.3f), {}), 0);
  EXPECT_EQ(count_chosen(std::vector<float>(kCount, 0.0f), std::vector<float>(kCount, 1.0f)), 0);
  std::vector<float> few(kCount, 0.0f);
  for (size_t i = 0; i < 7; ++i) few[i * 1000] = i % 2 == 0 ? 1e-45f : -3.0f;
  EXPECT_EQ(count_chosen(few, {}), 7);
  EXPECT_EQ(count_chosen(few, std::vector<float>(kCount, 0.0f)), 7);
}

TEST(SparseSplit, WhatIsNotFiniteIsNoOutlier) {
  std::vector<float> weights = distinct_floats(7);
  for (size_t i = 0; i < 300; ++i) {
    weights[i] =
        i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : -std::numeric_limits<float>::infinity();
  }
  const std::vector<uint8_t> chosen = choose_sparse(weights, {}, thresholds_of(weights, {}));
  EXPECT_EQ(std::count(chosen.begin(), chosen.begin() + 300, 1), 0);
  EXPECT_EQ(std::count(chosen.begin(), chosen.end(), 1), 180);
}

TEST(SparseSplit, ThreadsDoNotChangeTheThresholds) {
  const std::vector<float> weights = test::random_floats(kCount, 8);
  const std::vector<float> sensitivities = squares_of(test::random_floats(kCount, 9));
  const SparseThresholds one = thresholds_of(weights, sensitivities);
  for (const int threads : {2, 3, 7}) {
    const SparseThresholds several = thresholds_of(weights, sensitivities, {}, threads);
    EXPECT_EQ(one.magnitude, several.magnitude);
    EXPECT_EQ(one.sensitivity, several.sensitivity);
  }
}

TEST(SparseSplit, RefusesImpossibleFractions) {
  const std::vector<float> weights(kCount);
  for (const SparseFractions& fractions : {SparseFractions{-0.1, 0.0}, SparseFractions{0.0, 1.1},
                                           SparseFractions{0.6, 0.6}, SparseFractions{std::nan(""), 0.0}}) {
    EXPECT_THROW(thresholds_of(weights, {}, fractions), Error);
  }
  EXPECT_THROW(choose_sparse(std::vector<float>(3), std::vector<float>(2), {}), Error);
}

}  // namespace
}  // namespace sparse_split_test
}  // namespace verbatim
