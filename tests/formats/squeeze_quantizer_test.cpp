#include "formats/squeeze_quantizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "formats/round_to_nearest.h"
#include "formats/sparse_split.h"
#include "support/random.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

using test::random_floats;

/// Student's t: with few degrees of freedom, tails as heavy as those of real weights.
std::vector<float> heavy_tailed(size_t count, uint32_t seed, double freedom = 3.0) {
  std::mt19937 generator(seed);
  std::student_t_distribution<double> student(freedom);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(0.02 * student(generator));
  return values;
}

std::vector<float> random_sensitivities(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::lognormal_distribution<float> sensitivity(-20.0f, 2.0f);
  std::vector<float> values(count);
  for (float& value : values) value = sensitivity(generator);
  return values;
}

std::vector<float> values_of(const SqueezedColumn& column) {
  std::vector<float> values;
  values.reserve(column.codes.size());
  for (const uint8_t code : column.codes) values.push_back(column.value(code));
  return values;
}

/// Sum of sensitivity × squared error (thesis eq. 3.5).
double error_of(const std::vector<float>& weights, const std::vector<float>& sensitivities,
                const std::vector<float>& approximation) {
  double error = 0.0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double difference = static_cast<double>(weights[i]) - approximation[i];
    error += difference * difference * (sensitivities.empty() ? std::fabs(weights[i]) : sensitivities[i]);
  }
  return error;
}

/// What holds of any column.
void expect_sound(const SqueezedColumn& column, size_t count, int levels) {
  ASSERT_EQ(column.codes.size(), count);
  for (const uint8_t code : column.codes) ASSERT_LT(code, levels);
  ASSERT_LT(column.zero_code, levels);
  for (int i = 0; i < 16; ++i) {
    const float entry = to_float(column.table[static_cast<size_t>(i)]);
    EXPECT_TRUE(entry == 0.0f || std::isnormal(entry)) << i;
    EXPECT_NE(column.table[static_cast<size_t>(i)].bits, 0x8000) << "-0 at " << i;
    if (i >= levels) {
      EXPECT_EQ(entry, 0.0f) << i;
      continue;
    }
    EXPECT_LE(std::fabs(column.value(column.zero_code)), std::fabs(entry)) << i;
    EXPECT_GE(entry, to_float(column.table[static_cast<size_t>(std::max(i - 1, 0))])) << i;
  }
}

TEST(SqueezeQuantizer, EveryWeightHasTheNearestEntry) {
  for (const int levels : {8, 16}) {
    const std::vector<float> weights = heavy_tailed(700, 1);
    const SqueezedColumn column = quantize_squeezed(weights, {}, {}, levels);
    expect_sound(column, weights.size(), levels);
    for (size_t i = 0; i < weights.size(); ++i) {
      const float error = std::fabs(weights[i] - column.value(column.codes[i]));
      for (int code = 0; code < levels; ++code) {
        ASSERT_LE(error, std::fabs(weights[i] - column.value(static_cast<uint8_t>(code))));
      }
    }
  }
}

TEST(SqueezeQuantizer, BetweenTwoEntriesTheLowerOneIsTaken) {
  // The two weights of the middle count nothing, so the entries are the others.
  const std::vector<float> weights = {-8.0f, -6.0f, -4.0f, -2.0f, 2.0f, 4.0f, 6.0f, 8.0f, 3.0f, -3.0f};
  const std::vector<float> sensitivities = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0};
  const SqueezedColumn column = quantize_squeezed(weights, sensitivities, {}, 8);
  EXPECT_EQ(column.value(column.codes[8]), 2.0f);
  EXPECT_EQ(column.value(column.codes[9]), -4.0f);
}

TEST(SqueezeQuantizer, BeatsUniformRounding) {
  for (const bool heavy : {false, true}) {
    for (const bool sensitive : {false, true}) {
      const std::vector<float> weights = heavy ? heavy_tailed(2048, 2) : random_floats(2048, 2, 0.02f);
      const std::vector<float> sensitivities =
          sensitive ? random_sensitivities(2048, 3) : std::vector<float>();
      for (const int bits : {3, 4}) {
        std::vector<float> rounded(weights.size());
        round_to_nearest(weights, bits, rounded);
        const SqueezedColumn column = quantize_squeezed(weights, sensitivities, {}, 1 << bits);
        const double ratio =
            error_of(weights, sensitivities, values_of(column)) / error_of(weights, sensitivities, rounded);
        EXPECT_LT(ratio, heavy ? 0.4 : 0.7)
            << bits << " bits, heavy " << heavy << ", sensitive " << sensitive;
      }
    }
  }
}

TEST(SqueezeQuantizer, SensitiveWeightsAreNearlyExact) {
  const std::vector<float> weights = random_floats(1000, 4, 0.02f);
  std::vector<float> sensitivities(weights.size(), 1e-9f);
  for (size_t i = 0; i < 8; ++i) sensitivities[i * 100] = 1.0f;
  const SqueezedColumn column = quantize_squeezed(weights, sensitivities, {}, 8);
  for (size_t i = 0; i < 8; ++i) {
    const float weight = weights[i * 100];
    EXPECT_NEAR(column.value(column.codes[i * 100]), weight, 0.01f * std::fabs(weight) + 1e-5f);
  }
}

TEST(SqueezeQuantizer, WithoutSensitivitiesMagnitudesCount) {
  const std::vector<float> weights = heavy_tailed(500, 5);
  std::vector<float> magnitudes;
  magnitudes.reserve(weights.size());
  for (const float w : weights) magnitudes.push_back(std::fabs(w));
  const SqueezedColumn by_default = quantize_squeezed(weights, {}, {}, 16);
  const SqueezedColumn by_magnitude = quantize_squeezed(weights, magnitudes, {}, 16);
  EXPECT_EQ(by_default.table, by_magnitude.table);
  EXPECT_EQ(by_default.codes, by_magnitude.codes);
}

TEST(SqueezeQuantizer, LevelsLeftOverGoToTheInsensitive) {
  const std::vector<float> weights = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f};
  const std::vector<float> sensitivities = {1.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
  EXPECT_EQ(values_of(quantize_squeezed(weights, sensitivities, {}, 8)), weights);
  EXPECT_EQ(values_of(quantize_squeezed(weights, std::vector<float>(8), {}, 8)), weights);
}

TEST(SqueezeQuantizer, FewDistinctWeightsAreKept) {
  for (const int levels : {8, 16}) {
    for (int distinct = 1; distinct <= levels; ++distinct) {
      std::vector<float> weights(100);
      for (int i = 0; i < 100; ++i)
        weights[static_cast<size_t>(i)] = static_cast<float>(i % distinct - 3) * 0.25f;
      const SqueezedColumn column = quantize_squeezed(weights, {}, {}, levels);
      expect_sound(column, weights.size(), levels);
      EXPECT_EQ(values_of(column), weights) << distinct;
    }
  }
}

TEST(SqueezeQuantizer, SmallColumns) {
  expect_sound(quantize_squeezed({}, {}, {}, 8), 0, 8);
  const std::vector<float> one = {-0.5f};
  const SqueezedColumn column = quantize_squeezed(one, {}, {}, 16);
  expect_sound(column, 1, 16);
  EXPECT_EQ(values_of(column), one);
}

TEST(SqueezeQuantizer, AnyFloatsGiveASoundColumn) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float largest = std::numeric_limits<float>::max();
  const std::vector<std::vector<float>> columns = {
      std::vector<float>(64, 0.0f),
      std::vector<float>(64, -0.0f),
      {NAN, infinity, -infinity, 1.0f, -1.0f},
      {NAN, NAN},
      {1e-45f, -1e-45f, 1e-39f, 1e-38f, 2e-38f},
      {largest, -largest, largest / 2, 1.0f, 1e-30f},
  };
  for (const std::vector<float>& weights : columns) {
    for (const int levels : {8, 16}) {
      for (const std::vector<float>& sensitivities :
           {std::vector<float>(), std::vector<float>(weights.size()), std::vector<float>(weights.size(), NAN),
            std::vector<float>(weights.size(), -1.0f), std::vector<float>(weights.size(), largest),
            std::vector<float>(weights.size(), 1e-45f)}) {
        const SqueezedColumn column = quantize_squeezed(weights, sensitivities, {}, levels);
        expect_sound(column, weights.size(), levels);
        for (size_t i = 0; i < weights.size(); ++i) {
          if (!std::isfinite(weights[i])) {
            EXPECT_EQ(column.value(column.codes[i]), 0.0f);
          }
          EXPECT_TRUE(std::isfinite(sparse_residual(column, weights[i])) || std::fabs(weights[i]) == largest);
        }
      }
    }
  }
}

TEST(SqueezeQuantizer, WideRangesOfBitPatterns) {
  std::mt19937 generator(6);
  std::vector<float> weights(5000);
  std::vector<float> sensitivities(5000);
  for (float& w : weights) w = std::bit_cast<float>(static_cast<uint32_t>(generator()));
  for (float& s : sensitivities) s = std::bit_cast<float>(static_cast<uint32_t>(generator()));
  for (const int levels : {8, 16}) {
    expect_sound(quantize_squeezed(weights, {}, {}, levels), weights.size(), levels);
    expect_sound(quantize_squeezed(weights, sensitivities, {}, levels), weights.size(), levels);
  }
}

TEST(SqueezeQuantizer, SparseWeightsTakeNoPartInTheClustering) {
  std::vector<float> weights = random_floats(300, 7, 0.02f);
  const SqueezedColumn alone = quantize_squeezed(weights, {}, {}, 8);
  std::vector<uint8_t> is_sparse(weights.size(), 0);
  weights.insert(weights.begin() + 100, {50.0f, -70.0f});
  is_sparse.insert(is_sparse.begin() + 100, {1, 1});
  const SqueezedColumn column = quantize_squeezed(weights, {}, is_sparse, 8);
  expect_sound(column, weights.size(), 8);
  EXPECT_EQ(column.table, alone.table);
  for (const size_t i : {100u, 101u}) {
    EXPECT_EQ(column.codes[i], column.zero_code);
    EXPECT_FLOAT_EQ(column.value(column.codes[i]) + sparse_residual(column, weights[i]), weights[i]);
  }
}

TEST(SqueezeQuantizer, AllWeightsMayBeSparse) {
  const std::vector<float> weights = {1.0f, -2.0f, 0.5f};
  const SqueezedColumn column = quantize_squeezed(weights, {}, std::vector<uint8_t>(3, 1), 8);
  expect_sound(column, 3, 8);
  EXPECT_EQ(values_of(column), std::vector<float>(3));
  EXPECT_EQ(sparse_residual(column, weights[1]), -2.0f);
}

TEST(SqueezeQuantizer, DenseAndSparseLowersTheErrorOfHeavyTails) {
  constexpr int64_t kColumns = 16;
  constexpr size_t kK = 2048;
  const std::vector<float> matrix = heavy_tailed(kColumns * kK, 8);
  const std::vector<float> all_sensitivities = random_sensitivities(kColumns * kK, 9);
  const auto rows = [&](const std::vector<float>& from) -> MatrixRows {
    return [&from](int64_t column, std::span<float> row) {
      std::copy_n(from.begin() + column * static_cast<int64_t>(kK), kK, row.begin());
    };
  };
  ThreadTeam team(1);
  for (const bool sensitive : {false, true}) {
    const SparseThresholds thresholds = sparse_thresholds(
        kColumns, kK, rows(matrix), sensitive ? rows(all_sensitivities) : MatrixRows(), {}, team);
    for (const int levels : {8, 16}) {
      double dense = 0.0;
      double split = 0.0;
      for (int64_t c = 0; c < kColumns; ++c) {
        std::vector<float> weights(kK);
        std::vector<float> sensitivities(sensitive ? kK : 0);
        rows(matrix)(c, weights);
        if (sensitive) rows(all_sensitivities)(c, sensitivities);
        dense += error_of(weights, sensitivities,
                          values_of(quantize_squeezed(weights, sensitivities, {}, levels)));
        const std::vector<uint8_t> is_sparse = choose_sparse(weights, sensitivities, thresholds);
        const SqueezedColumn column = quantize_squeezed(weights, sensitivities, is_sparse, levels);
        std::vector<float> values = values_of(column);
        for (size_t i = 0; i < kK; ++i) {
          if (is_sparse[i] != 0) values[i] += to_float(to_bfloat16(sparse_residual(column, weights[i])));
        }
        split += error_of(weights, sensitivities, values);
      }
      EXPECT_LT(split, 0.8 * dense) << levels << ", sensitive " << sensitive;
    }
  }
}

TEST(SqueezeQuantizer, IsDeterministic) {
  const std::vector<float> weights = heavy_tailed(3000, 10);
  const std::vector<float> sensitivities = random_sensitivities(3000, 11);
  const SqueezedColumn first = quantize_squeezed(weights, sensitivities, {}, 16);
  const SqueezedColumn second = quantize_squeezed(weights, sensitivities, {}, 16);
  EXPECT_EQ(first.table, second.table);
  EXPECT_EQ(first.codes, second.codes);
}

TEST(SqueezeQuantizer, RefusesWhatDoesNotFit) {
  const std::vector<float> weights(4);
  EXPECT_THROW(quantize_squeezed(weights, {}, {}, 5), Error);
  EXPECT_THROW(quantize_squeezed(weights, std::vector<float>(3), {}, 8), Error);
  EXPECT_THROW(quantize_squeezed(weights, {}, std::vector<uint8_t>(5), 8), Error);
}

}  // namespace
}  // namespace verbatim
