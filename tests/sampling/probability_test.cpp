#include "sampling/probability.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sampling/logits.h"
#include "sampling/reference.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

TEST(SoftmaxWeight, IsTheExponentialFunction) {
  EXPECT_EQ(softmax_weight(0.0f), 1.0f);
  EXPECT_EQ(softmax_weight(-0.0f), 1.0f);
  EXPECT_EQ(softmax_weight(-88.0f), 0.0f);
  EXPECT_EQ(softmax_weight(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_EQ(softmax_weight(std::numeric_limits<float>::quiet_NaN()), 0.0f);
  for (float x = 0.0f; x >= -87.0f; x -= 0.000731f) {
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_NEAR(softmax_weight(x) / exact, 1.0, 2e-7) << x;
  }
}

TEST(Probability, IsTheSoftmax) {
  std::mt19937 random(3);
  for (const size_t count : {1u, 7u, 8u, 100u, 32003u}) {
    const std::vector<float> logits = test::random_logits(random, count, 3.0f);
    double total = 0.0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit));
    double sum = 0.0;
    for (size_t i = 0; i < std::min<size_t>(count, 200); ++i) {
      const float found = probability(logits, static_cast<int32_t>(i));
      ASSERT_NEAR(found / (std::exp(static_cast<double>(logits[i])) / total), 1.0, 2e-6);
      sum += found;
    }
    if (count <= 200) {
      EXPECT_NEAR(sum, 1.0, 1e-6);
    }
  }
}

TEST(Probability, OfDamagedLogits) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(probability(std::vector<float>{nan, 1.0f}, 0), 0.0f);
  EXPECT_EQ(probability(std::vector<float>{nan, 1.0f}, 1), 1.0f);
  EXPECT_EQ(probability(std::vector<float>{nan, -infinity}, 1), 0.0f);
  EXPECT_EQ(probability(std::vector<float>{1.0f, infinity}, 1), 1.0f);
  EXPECT_EQ(probability(std::vector<float>{1.0f, infinity}, 0), 0.0f);
  EXPECT_THROW(probability(std::vector<float>{1.0f}, 1), Error);
  EXPECT_THROW(probability(std::vector<float>{1.0f}, -1), Error);
}

}  // namespace
}  // namespace verbatim
