#include "sampling/logits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace verbatim {
namespace logits_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// All tokens with a usable logit, sorted as best_tokens() says.
std::vector<int32_t> sorted_tokens(const std::vector<float>& logits) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > -kInfinity) tokens.push_back(static_cast<int32_t>(i));
  }
  std::stable_sort(tokens.begin(), tokens.end(),
                   [&](int32_t a, int32_t b) { return logits[size_t(a)] > logits[size_t(b)]; });
  return tokens;
}

TEST(BestTokens, AreTheFirstOfAllInOrderHoweverMany) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const size_t sizes[] = {1, 31, 33, 500, 3000};
    std::vector<float> logits(sizes[random() % 5]);
    // Few different values, so that many tokens are equals.
    for (float& logit : logits) logit = static_cast<float>(random() % 50) - 20.0f;
    for (size_t i = 0; i < logits.size() / 9; ++i) {
      const float unusable[] = {kNaN, -kInfinity, kInfinity};
      logits[random() % logits.size()] = unusable[random() % 3];
    }
    const std::vector<int32_t> all = sorted_tokens(logits);
    for (const size_t count : {0u, 1u, 10u, 127u, 128u, 1000u, 5000u}) {
      const std::vector<int32_t> best = best_tokens(logits, count);
      ASSERT_EQ(best.size(), std::min(count, all.size())) << "round " << round;
      ASSERT_TRUE(std::equal(best.begin(), best.end(), all.begin())) << count << " in round " << round;
    }
  }
}

TEST(BestTokens, AreNoneWithoutAUsableLogit) {
  for (const size_t count : {1u, 1000u}) {
    EXPECT_TRUE(best_tokens(std::vector<float>{}, count).empty());
    EXPECT_TRUE(best_tokens(std::vector<float>{kNaN, -kInfinity}, count).empty());
  }
}

}  // namespace
}  // namespace logits_test
}  // namespace verbatim
