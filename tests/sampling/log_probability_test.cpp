#include "sampling/log_probability.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "verbatim/error.h"

namespace verbatim {
namespace log_probability_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(LogProbability, AgreesWithTheDefinitionInDoublePrecision) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 4.0f);
  for (const size_t count : {1u, 7u, 259u, 32000u}) {
    std::vector<float> logits(count);
    for (float& logit : logits) logit = normal(random);
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit));
    const auto token = static_cast<int32_t>(count / 2);
    const ScoredToken scored = score_token(logits, token, 8);
    EXPECT_EQ(scored.token, token);
    EXPECT_NEAR(scored.logprob, logits[count / 2] - std::log(total), 2e-6);
    ASSERT_EQ(scored.top.size(), std::min<size_t>(8, count));
    std::vector<float> sorted = logits;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    for (size_t i = 0; i < scored.top.size(); ++i) {
      EXPECT_EQ(logits[static_cast<size_t>(scored.top[i].token)], sorted[i]);
      EXPECT_NEAR(scored.top[i].logprob, sorted[i] - std::log(total), 2e-6);
    }
  }
}

TEST(LogProbability, AmongEqualsTheSmallerTokenComesFirst) {
  const std::vector<float> logits = {1.0f, 3.0f, 3.0f, 1.0f, 3.0f};
  const ScoredToken scored = score_token(logits, 0, 4);
  std::vector<int32_t> tokens;
  for (const TokenLogprob& top : scored.top) tokens.push_back(top.token);
  EXPECT_EQ(tokens, (std::vector<int32_t>{1, 2, 4, 0}));
}

TEST(LogProbability, UnusableLogitsHaveNoProbability) {
  const std::vector<float> logits = {kNan, 0.0f, -kInfinity};
  EXPECT_EQ(score_token(logits, 0, 3).logprob, -kInfinity);
  EXPECT_EQ(score_token(logits, 1, 3).logprob, 0.0);
  EXPECT_EQ(score_token(logits, 1, 3).top.size(), 1u);
  const std::vector<float> infinite = {0.0f, kInfinity, kInfinity};
  EXPECT_EQ(score_token(infinite, 0, 1).logprob, -kInfinity);
  EXPECT_DOUBLE_EQ(score_token(infinite, 1, 1).logprob, -std::log(2.0));
  EXPECT_THROW(score_token(std::vector<float>{kNan, -kInfinity}, 0, 1), Error);
}

}  // namespace
}  // namespace log_probability_test
}  // namespace verbatim
