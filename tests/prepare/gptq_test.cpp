#include "prepare/gptq.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "support/random.h"

namespace verbatim {
namespace {

constexpr int64_t kInputs = 40;
constexpr int64_t kRows = 100;

/// Inputs that depend on one another, as those of a model do.
std::vector<float> inputs_of(int64_t k, uint32_t seed) {
  std::vector<float> x = test::random_floats(static_cast<size_t>(kRows * k), seed);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t i = 1; i < k; ++i) {
      float& value = x[static_cast<size_t>(r * k + i)];
      value = (0.8f * x[static_cast<size_t>(r * k + i - 1)] + 0.6f * value) * (i % 7 == 3 ? 3.0f : 1.0f);
      if (i % 7 == 4) value /= 3.0f;
    }
  }
  return x;
}

SquareMatrix hessian_of(const std::vector<float>& x, int64_t k, int threads = 2) {
  SquareMatrix sum(k);
  ThreadTeam team(threads);
  add_outer_products(sum, Matrix<const float>{x.data(), kRows, k}, team);
  return sum;
}

DenseMatrix weights_of(int64_t columns, int64_t k, uint32_t seed) {
  return {.columns = columns, .k = k, .values = test::random_floats(static_cast<size_t>(columns * k), seed)};
}

/// The squared error of the outputs over the inputs, by definition.
double output_error(const DenseMatrix& weights, const RoundedMatrix& coded, const std::vector<float>& x) {
  double sum = 0.0;
  for (int64_t column = 0; column < weights.columns; ++column) {
    for (int64_t r = 0; r < kRows; ++r) {
      double difference = 0.0;
      for (int64_t i = 0; i < weights.k; ++i) {
        const double exact = weights.values[static_cast<size_t>(column * weights.k + i)];
        difference +=
            (exact - static_cast<double>(coded.value(column, i))) * x[static_cast<size_t>(r * weights.k + i)];
      }
      sum += difference * difference;
    }
  }
  return sum;
}

TEST(Gptq, AddsTheProductsOfAllPairsOfInputs) {
  const std::vector<float> x = inputs_of(kInputs, 1);
  const SquareMatrix one = hessian_of(x, kInputs, 1);
  EXPECT_EQ(one.values, hessian_of(x, kInputs, 3).values);
  for (int64_t i = 0; i < kInputs; ++i) {
    for (int64_t j = i; j < kInputs; ++j) {
      double sum = 0.0;
      for (int64_t r = 0; r < kRows; ++r) {
        sum += static_cast<double>(x[static_cast<size_t>(r * kInputs + i)]) *
               x[static_cast<size_t>(r * kInputs + j)];
      }
      EXPECT_NEAR(one.row(i)[j], sum, 1e-9 * kRows);
    }
  }
}

TEST(Gptq, FactorsTheInverseOfTheDampedHessian) {
  const SquareMatrix hessian = hessian_of(inputs_of(kInputs, 2), kInputs);
  const std::vector<int32_t> order = activation_order(hessian);
  ThreadTeam team(2);
  const SquareMatrix u = inverse_factor(hessian, order, team);
  double mean = 0.0;
  for (int64_t i = 0; i < kInputs; ++i) mean += hessian.row(i)[i] / kInputs;
  const auto damped = [&](int64_t i, int64_t j) {
    const auto [low, high] = std::minmax(order[static_cast<size_t>(i)], order[static_cast<size_t>(j)]);
    return hessian.row(low)[high] + (i == j ? 0.01 * mean : 0.0);
  };
  for (int64_t i = 0; i < kInputs; ++i) {
    for (int64_t j = 0; j < i; ++j) EXPECT_EQ(u.row(i)[j], 0.0);
    if (i > 0) {
      EXPECT_GE(damped(i - 1, i - 1), damped(i, i)) << "the largest are first";
    }
  }
  for (int64_t i = 0; i < kInputs; ++i) {
    for (int64_t j = 0; j < kInputs; ++j) {
      double product = 0.0;  // of UᵀU and the damped Hessian
      for (int64_t m = 0; m < kInputs; ++m) {
        double inverse = 0.0;
        for (int64_t l = 0; l < kInputs; ++l) inverse += u.row(l)[i] * u.row(l)[m];
        product += inverse * damped(m, j);
      }
      EXPECT_NEAR(product, i == j ? 1.0 : 0.0, 1e-9);
    }
  }
}

/// GPTQ as the paper derives it: after a weight is rounded, those left are where the error is least, found by
/// solving for them with the whole damped Hessian.
std::vector<int8_t> by_definition(const DenseMatrix& weights, const RoundedMatrix& scales,
                                  const SquareMatrix& hessian, int bits) {
  const int64_t k = weights.k;
  const std::vector<int32_t> order = activation_order(hessian);
  double mean = 0.0;
  for (int64_t i = 0; i < k; ++i) mean += hessian.row(i)[i] / static_cast<double>(k);
  std::vector<double> left(weights.values.begin(), weights.values.end());  // of one column
  std::vector<int8_t> codes(static_cast<size_t>(k));
  for (size_t at = 0; at < order.size(); ++at) {
    const auto input = static_cast<size_t>(order[at]);
    const float scale = to_float(scales.scales[input / kRoundedGroup]);
    const double most = 1 << (bits - 1);
    codes[input] = static_cast<int8_t>(std::clamp(std::nearbyint(left[input] / scale), -most, most - 1));
    const double error = left[input] - static_cast<double>(codes[input]) * static_cast<double>(scale);
    // Minimise dᵀHd over the changes d of the inputs that are left, where that of this input is -error:
    // H_rest d_rest = error · H_rest,input, by elimination.
    const size_t n = order.size() - at - 1;
    std::vector<std::vector<double>> system(n, std::vector<double>(n + 1));
    const auto damped = [&](size_t a, size_t b) {
      const auto [low, high] = std::minmax(order[a], order[b]);
      return hessian.row(low)[high] + (a == b ? 0.01 * mean : 0.0);
    };
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) system[i][j] = damped(at + 1 + i, at + 1 + j);
      system[i][n] = error * damped(at + 1 + i, at);
    }
    for (size_t p = 0; p < n; ++p) {
      for (size_t i = 0; i < n; ++i) {
        if (i == p) continue;
        const double factor = system[i][p] / system[p][p];
        for (size_t j = p; j <= n; ++j) system[i][j] -= factor * system[p][j];
      }
    }
    for (size_t i = 0; i < n; ++i)
      left[static_cast<size_t>(order[at + 1 + i])] += system[i][n] / system[i][i];
  }
  return codes;
}

TEST(Gptq, GivesTheCodesOfItsDefinition) {
  const SquareMatrix hessian = hessian_of(inputs_of(kInputs, 3), kInputs);
  ThreadTeam team(1);
  for (const int bits : {3, 4}) {
    for (uint32_t seed = 10; seed < 14; ++seed) {
      const DenseMatrix column = weights_of(1, kInputs, seed);
      const RoundedMatrix coded = round_by_gptq(column, hessian, bits, team);
      EXPECT_EQ(coded.codes, by_definition(column, coded, hessian, bits));
    }
  }
}

TEST(Gptq, ChangesTheOutputsLessThanRoundingEachWeight) {
  constexpr int64_t kWide = 300;  // two groups and a part of one
  const std::vector<float> x = inputs_of(kWide, 4);
  const SquareMatrix hessian = hessian_of(x, kWide);
  const DenseMatrix weights = weights_of(24, kWide, 5);
  ThreadTeam team(2);
  for (const int bits : {3, 4}) {
    const RoundedMatrix coded = round_by_gptq(weights, hessian, bits, team);
    const RoundedMatrix plain = round_each(weights, bits, team);
    EXPECT_LT(output_error(weights, coded, x), 0.5 * output_error(weights, plain, x));
    const auto [lowest, highest] = std::minmax_element(coded.codes.begin(), coded.codes.end());
    EXPECT_GE(*lowest, -(1 << (bits - 1)));
    EXPECT_LT(*highest, 1 << (bits - 1));
    ASSERT_EQ(coded.scales.size(), plain.scales.size());
    for (size_t i = 0; i < coded.scales.size(); ++i) EXPECT_EQ(coded.scales[i].bits, plain.scales[i].bits);
  }
}

TEST(Gptq, HasTheSameBytesWithAnyNumberOfThreads) {
  const SquareMatrix hessian = hessian_of(inputs_of(kInputs, 6), kInputs);
  const DenseMatrix weights = weights_of(37, kInputs, 7);  // two blocks of columns and a part of one
  ThreadTeam one(1);
  ThreadTeam three(3);
  EXPECT_EQ(inverse_factor(hessian, activation_order(hessian), one).values,
            inverse_factor(hessian, activation_order(hessian), three).values);
  EXPECT_EQ(round_by_gptq(weights, hessian, 4, one).codes, round_by_gptq(weights, hessian, 4, three).codes);
}

TEST(Gptq, RoundsToNearestWhereTheTextSaysNothing) {
  DenseMatrix weights = weights_of(3, kInputs, 8);
  weights.values[5] = NAN;
  ThreadTeam team(1);
  EXPECT_EQ(round_by_gptq(weights, SquareMatrix(kInputs), 4, team).codes, round_each(weights, 4, team).codes);
}

}  // namespace
}  // namespace verbatim
