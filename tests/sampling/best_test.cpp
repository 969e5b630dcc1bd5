#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "sampling/probability.h"
#include "sampling/reference.h"
#include "sampling/sampler.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<Guess> best(const SamplingOptions& options, const std::vector<float>& logits, int64_t position,
                        const std::vector<int32_t>& history, size_t count) {
  std::vector<Guess> guesses(count);
  Sampler sampler(options);
  guesses.resize(sampler.best(logits, position, history, guesses));
  return guesses;
}

SamplingOptions at(float temperature, uint64_t seed = 0) {
  SamplingOptions options;
  options.temperature = temperature;
  options.seed = seed;
  return options;
}

/// best() as its definition reads: every token's score computed and sorted.
std::vector<Guess> defined(const SamplingOptions& options, std::vector<float> logits, int64_t position,
                           const std::vector<int32_t>& history, size_t count) {
  for (const int32_t token : std::set<int32_t>(history.begin(), history.end())) {
    if (token < 0 || static_cast<size_t>(token) >= logits.size()) continue;
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / options.repetition_penalty : logit * options.repetition_penalty;
  }
  const bool greedy = options.temperature == 0.0f;
  std::vector<int32_t> tokens = greedy ? test::in_order(logits) : test::filtered(logits, options);
  const auto score = [&](int32_t token) {
    const double logit = logits[static_cast<size_t>(token)];
    return greedy ? logit : logit / options.temperature + gumbel({options.seed, position}, token);
  };
  std::sort(tokens.begin(), tokens.end(),
            [&](int32_t a, int32_t b) { return score(a) > score(b) || (score(a) == score(b) && a < b); });
  if (!greedy) tokens.resize(std::min<size_t>(tokens.size(), kGumbelBest));
  double total = 0.0;
  const double scale = greedy ? 1.0 : static_cast<double>(options.temperature);
  const auto weight = [&](int32_t token) { return std::exp((score(token) - score(tokens[0])) * scale); };
  for (const int32_t token : tokens) total += weight(token);
  std::vector<Guess> guesses;
  for (size_t i = 0; i < std::min(count, tokens.size()); ++i) {
    guesses.push_back({tokens[i], static_cast<float>(weight(tokens[i]) / total)});
  }
  return guesses;
}

TEST(Best, EqualsItsDefinitionAndBeginsWithTheSample) {
  std::mt19937 random(21);
  for (int round = 0; round < 3000; ++round) {
    SamplingOptions options;
    options.temperature = std::vector{0.0f, 0.7f, 1.2f, 1e-20f, 1e6f}[random() % (round % 4 == 0 ? 5 : 3)];
    options.top_k = std::vector{0, 0, 3, 40}[random() % 4];
    options.top_p = std::vector{1.0f, 0.5f, 0.95f}[random() % 3];
    options.min_p = std::vector{0.0f, 0.0f, 0.07f}[random() % 3];
    options.repetition_penalty = std::vector{1.0f, 1.25f}[random() % 2];
    options.seed = random();
    const size_t sizes[] = {1, 5, 64, 65, 1000, 1100, 5003};
    const float spreads[] = {0.0f, 0.3f, 2.0f, 8.0f};
    std::vector<float> logits =
        test::random_logits(random, sizes[random() % 7], spreads[random() % 4], round % 2 == 0 ? 4 : 0);
    for (size_t i = 1; i < logits.size(); ++i) {
      if (random() % 7 == 0) logits[i] = random() % 2 == 0 ? kNaN : -kInfinity;
    }
    std::vector<int32_t> history(random() % 30);
    for (int32_t& token : history) token = static_cast<int32_t>(random() % logits.size());
    const size_t count = 1 + random() % Sampler::kMostGuesses;

    const std::vector<Guess> found = best(options, logits, round, history, count);
    const std::vector<Guess> expected = defined(options, logits, round, history, count);
    ASSERT_EQ(found.size(), expected.size()) << "round " << round;
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].token, expected[i].token) << "round " << round << ", place " << i;
      ASSERT_NEAR(found[i].confidence, expected[i].confidence, 2e-5) << "round " << round << ", place " << i;
    }
    Sampler sampler(options);
    ASSERT_EQ(found[0].token, sampler.sample(logits, round, history)) << "round " << round;
  }
}

TEST(Best, IsAsSureAsTheTokenIsProbableAtTemperatureZero) {
  std::mt19937 random(4);
  const std::vector<float> logits = test::random_logits(random, 3000, 3.0f);
  for (const Guess& guess : best(at(0.0f), logits, 0, {}, 8)) {
    EXPECT_EQ(guess.confidence, probability(logits, guess.token));
  }
}

TEST(Best, GivesNothingWithoutAnyUsableLogit) {
  for (const std::vector<float>& logits : {std::vector<float>{}, {kNaN, kNaN}, {-kInfinity, kNaN}}) {
    EXPECT_TRUE(best(at(0.0f), logits, 12, {}, 4).empty());
    EXPECT_TRUE(best(at(1.0f), logits, 12, {}, 4).empty());
  }
  EXPECT_TRUE(best(at(1.0f), {1, 2}, 0, {}, 0).empty());
}

TEST(Best, TakesTheFirstInfiniteLogitAlone) {
  for (const float temperature : {0.0f, 1.0f}) {
    const std::vector<Guess> found = best(at(temperature), {0, kInfinity, kInfinity}, 0, {}, 3);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].token, 1);
    EXPECT_EQ(found[0].confidence, 1.0f);
  }
}

TEST(Best, IgnoresTokensOfTheHistoryThatTheDraftDoesNotKnow) {
  SamplingOptions options;
  options.repetition_penalty = 2.0f;
  const std::vector<Guess> found = best(options, {4, 3}, 0, {0, 2, 100, -1}, 2);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].token, 1);
}

TEST(Best, TakesAsManyAsTheFiltersLeave) {
  SamplingOptions options = at(1.0f);
  options.top_k = 2;
  EXPECT_EQ(best(options, {1, 2, 3, 4}, 0, {}, 8).size(), 2u);
  EXPECT_EQ(best(at(1.0f), {1, 2, kNaN, 4}, 0, {}, 8).size(), 3u);
  EXPECT_EQ(best(at(0.0f), std::vector<float>(100, 1.0f), 0, {}, 20).size(), Sampler::kMostGuesses);
}

// The confidence is a prediction: how often a draft whose logits are a little wrong makes the right choice.
TEST(Best, IsSurerWhereAnInexactDraftIsRightMoreOften) {
  std::mt19937 random(9);
  std::normal_distribution<float> error(0.0f, 0.4f);
  const SamplingOptions options = at(0.8f, 5);
  Sampler draft(options);
  Sampler target(options);
  std::array<int, 2> tries{};
  std::array<int, 2> hits{};
  for (int64_t position = 0; position < 4000; ++position) {
    std::vector<float> logits = test::random_logits(random, 200, 2.0f);
    const int32_t token = target.sample(logits, position, {});
    for (float& logit : logits) logit += error(random);
    Guess guess;
    ASSERT_EQ(draft.best(logits, position, {}, {&guess, 1}), 1u);
    const size_t sure = guess.confidence > 0.5f ? 1 : 0;
    ++tries[sure];
    hits[sure] += static_cast<int>(guess.token == token);
  }
  EXPECT_GT(hits[1] / static_cast<double>(tries[1]), 0.9);
  EXPECT_LT(hits[0] / static_cast<double>(tries[0]), 0.75);
}

}  // namespace
}  // namespace verbatim
