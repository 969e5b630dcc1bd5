#include "sampling/gumbel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sampling/logits.h"
#include "sampling/reference.h"

namespace verbatim {
namespace {

int32_t drawn(const std::vector<float>& logits, float temperature, NoisePlace place) {
  const int32_t likeliest = first_token_with(logits, largest_logit(logits));
  return gumbel_argmax(logits, temperature, place, Cut{}, likeliest);
}

TEST(Gumbel, BelongsToSeedPositionAndToken) {
  const double noise = gumbel({1, 2}, 3);
  EXPECT_EQ(noise, gumbel({1, 2}, 3));
  EXPECT_NE(noise, gumbel({1, 2}, 4));
  EXPECT_NE(noise, gumbel({1, 3}, 3));
  EXPECT_NE(noise, gumbel({2, 2}, 3));
  EXPECT_NE(noise, gumbel({1 + (uint64_t{1} << 32), 2}, 3));
  EXPECT_NE(noise, gumbel({1, 2 + (int64_t{1} << 32)}, 3));
}

TEST(Gumbel, HasTheMomentsOfTheDistribution) {
  constexpr int kCount = 400000;
  double sum = 0.0;
  double squares = 0.0;
  for (int i = 0; i < kCount; ++i) {
    const double noise = gumbel({99, i / 1000}, i % 1000);
    ASSERT_TRUE(std::isfinite(noise));
    sum += noise;
    squares += noise * noise;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 0.577216, 0.01);                            // Euler's constant
  EXPECT_NEAR(squares / kCount - mean * mean, 1.644934, 0.03);  // pi^2 / 6
}

TEST(GumbelArgmax, EqualsTheArgmaxOverEveryToken) {
  std::mt19937 random(5);
  const float temperatures[] = {1e-30f, 0.01f, 0.3f, 0.8f, 1.0f, 3.0f, 1e6f, 1e30f};
  const size_t counts[] = {1, 3, 63, 64, 65, 129, 1000, 5003};
  const float spreads[] = {0.0f, 0.5f, 2.0f, 8.0f, 1e10f};
  for (int round = 0; round < 3000; ++round) {
    const float temperature = temperatures[random() % 8];
    std::vector<float> logits =
        test::random_logits(random, counts[random() % 8], spreads[random() % 5], round % 3 == 0 ? 2 : 0);
    for (size_t i = 1; i < logits.size(); ++i) {
      if (random() % 10 == 0) logits[i] = -std::numeric_limits<float>::infinity();
      if (random() % 10 == 0) logits[i] = std::numeric_limits<float>::quiet_NaN();
    }
    const NoisePlace place{random(), static_cast<int64_t>(random())};
    ASSERT_EQ(drawn(logits, temperature, place),
              test::best_of(logits, test::in_order(logits), temperature, place))
        << "round " << round << ": " << logits.size() << " logits, temperature " << temperature;
  }
}

TEST(GumbelArgmax, FindsAnUnlikelyWinner) {
  // One token far ahead and many behind: one of these wins now and then, and must not be skipped.
  std::vector<float> logits(4096, 0.0f);
  logits[1000] = 8.0f;
  int others = 0;
  for (int64_t position = 0; position < 400; ++position) {
    const NoisePlace place{3, position};
    const int32_t token = drawn(logits, 1.0f, place);
    ASSERT_EQ(token, test::best_of(logits, test::in_order(logits), 1.0f, place));
    others += static_cast<int>(token != 1000);
  }
  EXPECT_NEAR(others / 400.0, 4095.0 / (4095.0 + std::exp(8.0)), 0.08);
}

}  // namespace
}  // namespace verbatim
