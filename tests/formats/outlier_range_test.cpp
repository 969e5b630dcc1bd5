#include "formats/outlier_range.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/random.h"

namespace verbatim {
namespace {

/// The threshold as the authors write it.
double threshold(const OutlierRange& range, double r) {
  const double width = static_cast<double>(range.upper_quartile) - range.lower_quartile;
  return std::max(std::fabs(range.lower_quartile - r * width), std::fabs(range.upper_quartile + r * width));
}

TEST(OutlierRange, HasTheQuartilesOfTheWeights) {
  std::vector<float> weights = test::random_floats(2000, 1);
  for (float& w : weights) w = 0.3f + 2.0f * w;
  weights[7] = NAN;
  ThreadTeam team(2);
  const OutlierRange range = outlier_range(
      20, 100,
      [&](int64_t column, std::span<float> row) {
        std::copy_n(weights.begin() + column * 100, 100, row.begin());
      },
      team);
  weights[7] = 0.0f;
  std::sort(weights.begin(), weights.end());
  EXPECT_EQ(range.lower_quartile, weights[499]);
  EXPECT_EQ(range.upper_quartile, weights[1499]);
}

TEST(OutlierRange, IsThatOfTheAuthorsForQuartilesOfAnySign) {
  for (const OutlierRange& range : {OutlierRange{-1.0f, 1.5f}, OutlierRange{-2.0f, 0.5f},
                                    OutlierRange{0.5f, 2.0f}, OutlierRange{-3.0f, -0.25f}}) {
    for (const float r : {0.0f, 0.25f, 1.0f, 3.0f, 17.5f}) {
      const double expected = threshold(range, r);
      EXPECT_NEAR(range.magnitude(r), expected, 1e-5 * expected);
      EXPECT_NEAR(range.ratio(static_cast<float>(expected)), r, 1e-5 * (1 + r));
    }
  }
}

TEST(OutlierRange, MakesNoOutlierOfAWeightWhoseRatioIsThatOfTheThreshold) {
  const OutlierRange range{-0.125f, 0.1171875f};
  for (const float magnitude : test::random_floats(500, 5)) {
    const float ratio = range.ratio(std::fabs(magnitude));
    EXPECT_LE(std::fabs(magnitude), range.magnitude(ratio));
    EXPECT_GT(range.ratio(std::nextafter(range.magnitude(ratio), 1e30f)), ratio);
  }
}

TEST(OutlierRange, MayBeEmpty) {
  const OutlierRange constant{0.5f, 0.5f};
  EXPECT_EQ(constant.ratio(0.5f), 0.0f);
  EXPECT_GT(constant.ratio(0.75f), 1e30f);
  EXPECT_EQ(constant.magnitude(2.0f), 0.5f);
}

}  // namespace
}  // namespace verbatim
