#include "formats/round_to_nearest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "support/random.h"
#include "verbatim/error.h"

namespace verbatim {
namespace round_to_nearest_test {
namespace {

std::vector<float> rounded(const std::vector<float>& weights, int bits) {
  std::vector<float> out(weights.size());
  round_to_nearest(weights, bits, out);
  return out;
}

TEST(RoundToNearest, ValuesAtEqualDistancesAreKept) {
  const std::vector<float> weights = {-0.75f, -0.5f, -0.25f, 0.0f, 0.25f, 0.5f, 0.75f, 1.0f};
  EXPECT_EQ(rounded(weights, 3), weights);
}

TEST(RoundToNearest, ErrsByHalfAStepAtMost) {
  const std::vector<float> weights = test::random_floats(1000, 1, 0.02f);
  const auto [smallest, largest] = std::minmax_element(weights.begin(), weights.end());
  for (const int bits : {3, 4}) {
    const std::vector<float> out = rounded(weights, bits);
    const float step = (*largest - *smallest) / static_cast<float>((1 << bits) - 1);
    EXPECT_LE(std::set<float>(out.begin(), out.end()).size(), size_t{1} << bits);
    for (size_t i = 0; i < weights.size(); ++i) {
      // The grid is shifted so that it meets zero, by half a step at most, so the ends can err by a whole
      // one.
      const bool end = std::fabs(weights[i] - *smallest) < step || std::fabs(weights[i] - *largest) < step;
      EXPECT_LE(std::fabs(out[i] - weights[i]), (end ? 1.001f : 0.501f) * step);
    }
  }
}

TEST(RoundToNearest, ZeroStaysZeroAndOneSideIsEnough) {
  EXPECT_EQ(rounded({0.0f, 1.75f, 0.75f}, 3), (std::vector<float>{0.0f, 1.75f, 0.75f}));
  EXPECT_EQ(rounded({0.0f, -0.0f}, 4), (std::vector<float>{0.0f, 0.0f}));
  EXPECT_EQ(rounded({2.0f, 2.0f}, 3), (std::vector<float>{2.0f, 2.0f}));
  EXPECT_TRUE(rounded({}, 3).empty());
}

TEST(RoundToNearest, StrangeNumbersGiveFiniteWeights) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float largest = std::numeric_limits<float>::max();
  for (const float out : rounded({NAN, infinity, -infinity, largest, -largest, 1e-45f}, 4)) {
    EXPECT_TRUE(std::isfinite(out));
  }
  EXPECT_THROW(rounded({1.0f}, 0), Error);
  EXPECT_THROW(rounded({1.0f}, 17), Error);
}

}  // namespace
}  // namespace round_to_nearest_test
}  // namespace verbatim
