#include "prepare/rounded_matrix.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/packed.h"
#include "support/random.h"

namespace verbatim {
namespace rounded_matrix_test {
namespace {

DenseMatrix weights_of(int64_t columns, int64_t k, uint32_t seed) {
  return {.columns = columns, .k = k, .values = test::random_floats(static_cast<size_t>(columns * k), seed)};
}

TEST(RoundedMatrix, IsPackedIntoInt4AsItIs) {
  ThreadTeam team(2);
  for (const int64_t k : {128, 112, 300, 5}) {  // also inputs that are no multiple of a step
    for (const int bits : {3, 4}) {
      const DenseMatrix weights = weights_of(37, k, 1);
      const RoundedMatrix rounded = round_each(weights, bits, team);
      const PackResult packed = pack_rounded(weights, rounded, team);
      EXPECT_TRUE(packed.finite);
      for (int64_t column = 0; column < weights.columns; ++column) {
        const std::vector<float> row =
            test::unpacked_column(packed.weight.stores.front(), Reading::kInt4W4A16, column);
        for (int64_t i = 0; i < k; ++i) {
          ASSERT_EQ(row[static_cast<size_t>(i)], rounded.value(column, i)) << k << ", " << bits;
        }
      }
    }
  }
}

TEST(RoundedMatrix, TakesTheNearestOfAsManyLevelsAsItsBitsGive) {
  ThreadTeam team(2);
  const DenseMatrix weights = weights_of(8, 256, 2);
  for (const int bits : {3, 4}) {
    const int most = 1 << (bits - 1);
    const RoundedMatrix rounded = round_each(weights, bits, team);
    bool lowest = false;
    for (int64_t column = 0; column < weights.columns; ++column) {
      for (int64_t i = 0; i < weights.k; ++i) {
        const int code = rounded.codes[static_cast<size_t>(column * weights.k + i)];
        ASSERT_GE(code, -most);
        ASSERT_LT(code, most);
        lowest = lowest || code == -most;
        const float weight = weights.values[static_cast<size_t>(column * weights.k + i)];
        const float step = std::fabs(to_float(rounded.scale(column, i)));
        const bool inside = code > -most && code < most - 1;
        if (inside) {
          ASSERT_LE(std::fabs(weight - rounded.value(column, i)), 0.5001f * step);
        }
      }
    }
    EXPECT_TRUE(lowest) << "the level without a counterpart is used";
  }
}

TEST(RoundedMatrix, OfFourBitsIsThatOfInt4) {
  ThreadTeam team(2);
  DenseMatrix weights = weights_of(20, 300, 3);
  weights.values[3] = -9.0f;  // of a group that reaches as far to either side
  weights.values[40] = 9.0f;
  weights.values[310] = NAN;
  const PackResult own = pack_to_nearest(weights, 4, team);
  const PackResult rounded = pack_rounded(weights, round_each(weights, 4, team), team);
  for (int64_t column = 0; column < weights.columns; ++column) {
    EXPECT_EQ(test::unpacked_column(own.weight.stores.front(), Reading::kInt4W4A16, column),
              test::unpacked_column(rounded.weight.stores.front(), Reading::kInt4W4A16, column));
  }
}

TEST(RoundedMatrix, TakesWhatIsNoNumberForZeroAndSaysSo) {
  ThreadTeam team(1);
  DenseMatrix weights = weights_of(3, 40, 4);
  weights.values[7] = NAN;
  weights.values[50] = -INFINITY;
  const RoundedMatrix rounded = round_each(weights, 3, team);
  EXPECT_EQ(rounded.value(0, 7), 0.0f);
  EXPECT_EQ(rounded.value(1, 10), 0.0f);
  EXPECT_FALSE(pack_rounded(weights, rounded, team).finite);
  EXPECT_FALSE(pack_to_nearest(weights, 3, team).finite);
}

}  // namespace
}  // namespace rounded_matrix_test
}  // namespace verbatim
