#include "model/hadamard.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/random.h"

namespace verbatim {
namespace {

/// The matrix itself, row by row: what forward() makes of the unit vectors.
std::vector<std::vector<float>> matrix_of(const Hadamard& transform) {
  std::vector<std::vector<float>> rows;
  for (int64_t i = 0; i < transform.order(); ++i) {
    std::vector<float>& row = rows.emplace_back(static_cast<size_t>(transform.order()));
    row[static_cast<size_t>(i)] = 1.0f;
    transform.forward(row.data());
  }
  return rows;
}

class HadamardOrders : public testing::TestWithParam<int64_t> {};

// Powers of two, Paley's first and second kind, both with a power of two beside them, and orders that have
// blocks only.
INSTANTIATE_TEST_SUITE_P(, HadamardOrders,
                         testing::Values(1, 2, 4, 64, 12, 20, 24, 28, 36, 44, 160, 352, 1408, 3, 6, 86, 92));

TEST_P(HadamardOrders, EntriesHaveOneMagnitudeInABlock) {
  const Hadamard transform(GetParam());
  const auto rows = matrix_of(transform);
  const float magnitude = 1.0f / std::sqrt(static_cast<float>(transform.block()));
  for (int64_t i = 0; i < transform.order(); ++i) {
    for (int64_t j = 0; j < transform.order(); ++j) {
      const bool inside = i / transform.block() == j / transform.block();
      ASSERT_FLOAT_EQ(std::fabs(rows[static_cast<size_t>(i)][static_cast<size_t>(j)]),
                      inside ? magnitude : 0.0f)
          << i << ", " << j;
    }
  }
}

TEST_P(HadamardOrders, RowsAreOrthogonal) {
  const auto rows = matrix_of(Hadamard(GetParam()));
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = 0.0;
      for (size_t k = 0; k < rows.size(); ++k) sum += static_cast<double>(rows[i][k]) * rows[j][k];
      ASSERT_NEAR(sum, i == j ? 1.0 : 0.0, 1e-5) << i << ", " << j;
    }
  }
}

// As the transform across heads has it.
TEST_P(HadamardOrders, ChannelsOfSeveralNumbersAreMixedNumberByNumber) {
  const Hadamard transform(GetParam());
  constexpr int64_t kWidth = 5;
  std::vector<float> wide = test::random_floats(GetParam() * kWidth, 4);
  std::vector<std::vector<float>> single(kWidth);
  for (size_t i = 0; i < wide.size(); ++i) single[i % kWidth].push_back(wide[i]);
  transform.forward(wide.data(), kWidth);
  for (std::vector<float>& x : single) transform.forward(x.data());
  for (size_t i = 0; i < wide.size(); ++i) ASSERT_EQ(wide[i], single[i % kWidth][i / kWidth]);
}

TEST(Hadamard, MixesAllChannelsWherePaleyReaches) {
  for (const int64_t order : {2048, 5632, 1408, 11264, 2560}) EXPECT_EQ(Hadamard(order).block(), order);
  EXPECT_EQ(Hadamard(7).block(), 1);
  EXPECT_EQ(Hadamard(6).block(), 2);
}

}  // namespace
}  // namespace verbatim
