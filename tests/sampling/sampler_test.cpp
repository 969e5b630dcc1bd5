#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "sampling/reference.h"
#include "verbatim/error.h"

namespace verbatim {
namespace sampler_test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

SamplingOptions with(const std::function<void(SamplingOptions&)>& change) {
  SamplingOptions options;
  change(options);
  return options;
}

int32_t greedy(const std::vector<float>& logits, const std::vector<int32_t>& history = {},
               float penalty = 1.0f) {
  Sampler sampler(with([&](auto& o) { o.repetition_penalty = penalty; }));
  return sampler.sample(logits, 0, history);
}

ErrorKind kind_of_failure(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Sampler, GreedyTakesTheLargestAndTheSmallerTokenAmongEquals) {
  EXPECT_EQ(greedy({1, 5, 3}), 1);
  EXPECT_EQ(greedy({1, 5, 5}), 1);
  EXPECT_EQ(greedy({-kInfinity, -3, kNaN}), 1);
  EXPECT_EQ(greedy({0, kInfinity, kInfinity}), 1);
  std::vector<float> many(1000, -1.0f);
  many[17] = many[900] = 2.0f;
  EXPECT_EQ(greedy(many), 17);
}

TEST(Sampler, FailsWithoutAnyUsableLogit) {
  for (const std::vector<float>& logits : {std::vector<float>{}, {kNaN, kNaN}, {-kInfinity, kNaN}}) {
    for (const float temperature : {0.0f, 1.0f}) {
      Sampler sampler(with([&](auto& o) { o.temperature = temperature; }));
      EXPECT_EQ(kind_of_failure([&] { sampler.sample(logits, 12, {}); }), ErrorKind::kBadInput);
    }
  }
}

TEST(Sampler, RefusesSettingsOutsideTheirRange) {
  const std::pair<const char*, SamplingOptions> wrong[] = {
      {"temperature", with([](auto& o) { o.temperature = -0.1f; })},
      {"temperature", with([](auto& o) { o.temperature = kNaN; })},
      {"temperature", with([](auto& o) { o.temperature = kInfinity; })},
      {"top-k", with([](auto& o) { o.top_k = -1; })},
      {"top-p", with([](auto& o) { o.top_p = 0.0f; })},
      {"top-p", with([](auto& o) { o.top_p = 1.1f; })},
      {"top-p", with([](auto& o) { o.top_p = kNaN; })},
      {"min-p", with([](auto& o) { o.min_p = -0.1f; })},
      {"min-p", with([](auto& o) { o.min_p = 1.1f; })},
      {"min-p", with([](auto& o) { o.min_p = kNaN; })},
      {"repetition penalty", with([](auto& o) { o.repetition_penalty = 0.0f; })},
      {"repetition penalty", with([](auto& o) { o.repetition_penalty = kNaN; })},
      {"presence penalty", with([](auto& o) { o.presence_penalty = kNaN; })},
      {"frequency penalty", with([](auto& o) { o.frequency_penalty = kInfinity; })},
  };
  for (const auto& [setting, options] : wrong) {
    try {
      Sampler sampler(options);
      ADD_FAILURE() << setting << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_EQ(std::string(error.what()).find(setting), 0u) << error.what();
    }
  }
}

TEST(Sampler, PenalisesTokensOfTheHistoryOnce) {
  EXPECT_EQ(greedy({4, 3}, {0}, 1.3f), 0);  // 4 / 1.3 is above 3
  EXPECT_EQ(greedy({4, 3}, {0, 0, 0}, 1.3f), 0);
  EXPECT_EQ(greedy({4, 3}, {0}, 1.5f), 1);
  EXPECT_EQ(greedy({-2, -3}, {0}, 2.0f), 1);   // a negative logit is multiplied
  EXPECT_EQ(greedy({3, 4}, {0}, 0.5f), 0);     // below 1 it is a reward
  EXPECT_EQ(greedy({4, 3}, {0, 1}, 1.5f), 0);  // both alike
  EXPECT_EQ(kind_of_failure([] { greedy({1, 2}, {2}, 1.5f); }), ErrorKind::kUsage);
  EXPECT_EQ(kind_of_failure([] { greedy({1, 2}, {-1}, 1.5f); }), ErrorKind::kUsage);
}

TEST(Sampler, SubtractsPenaltiesOfTokensThatWereGenerated) {
  const auto chosen = [](float presence, float frequency, const std::vector<float>& logits,
                         const std::vector<int32_t>& history, size_t prompt = 0) {
    Sampler sampler(with([&](auto& o) {
                      o.presence_penalty = presence;
                      o.frequency_penalty = frequency;
                    }),
                    {.first_generated = prompt});
    sampler.sample(logits, 0, history);  // leaves nothing over for the next call
    return sampler.sample(logits, 0, history);
  };
  EXPECT_EQ(chosen(0.9f, 0.0f, {4, 3}, {0}), 0);
  EXPECT_EQ(chosen(1.1f, 0.0f, {4, 3}, {0}), 1);
  EXPECT_EQ(chosen(0.9f, 0.0f, {4, 3}, {0, 0, 0}), 0);  // once, however often it came
  EXPECT_EQ(chosen(0.0f, 0.6f, {4, 3}, {0}), 0);
  EXPECT_EQ(chosen(0.0f, 0.6f, {4, 3}, {0, 0}), 1);  // as often as it came
  EXPECT_EQ(chosen(0.5f, 0.4f, {4, 3}, {0}), 0);
  EXPECT_EQ(chosen(0.5f, 0.4f, {4, 3}, {0, 0}), 1);
  EXPECT_EQ(chosen(2.0f, 2.0f, {4, 3}, {0, 0}, 2), 0);  // the prompt does not count
  EXPECT_EQ(chosen(2.0f, 2.0f, {4, 3}, {0, 0}, 1), 1);
  EXPECT_EQ(chosen(-1.1f, 0.0f, {3, 4}, {0}), 0);  // below 0 it is a reward
}

TEST(Sampler, LeavesTheLogitsOfTheCallerAlone) {
  const std::vector<float> logits = {4, 3, 1};
  std::vector<float> same = logits;
  Sampler sampler(with([](auto& o) { o.repetition_penalty = 2.0f; }));
  EXPECT_EQ(sampler.sample(same, 0, std::vector<int32_t>{0}), 1);
  EXPECT_EQ(same, logits);
  EXPECT_EQ(sampler.sample(same, 0, {}), 0);  // nothing is left over from the call before
}

TEST(Sampler, EqualsItsDefinition) {
  std::mt19937 random(11);
  for (int round = 0; round < 1000; ++round) {
    SamplingOptions options;
    options.temperature = std::vector{0.2f, 0.8f, 1.7f}[random() % 3];
    options.top_k = std::vector{0, 0, 5, 40}[random() % 4];
    options.top_p = std::vector{1.0f, 0.5f, 0.95f}[random() % 3];
    options.min_p = std::vector{0.0f, 0.0f, 0.07f}[random() % 3];
    options.repetition_penalty = std::vector{1.0f, 1.25f}[random() % 2];
    options.seed = random();
    std::vector<float> logits =
        test::random_logits(random, 1 + random() % 3000, 2.0f, round % 2 == 0 ? 4 : 0);
    for (size_t i = 1; i < logits.size(); i += 7) logits[i] = i % 2 == 0 ? kNaN : -kInfinity;
    std::vector<int32_t> history(random() % 30);
    for (int32_t& token : history) token = static_cast<int32_t>(random() % logits.size());

    std::vector<float> penalised = logits;
    for (const int32_t token : std::set<int32_t>(history.begin(), history.end())) {
      float& logit = penalised[static_cast<size_t>(token)];
      logit = logit > 0 ? logit / options.repetition_penalty : logit * options.repetition_penalty;
    }
    const int32_t expected = test::best_of(penalised, test::filtered(penalised, options), options.temperature,
                                           {options.seed, round});
    Sampler sampler(options);
    ASSERT_EQ(sampler.sample(logits, round, history), expected) << "round " << round;
    ASSERT_EQ(sampler.sample(logits, round, history), expected) << "round " << round << ", again";
  }
}

/// Draws many tokens and returns the chi-square statistic against `weights`.
double chi_square(const std::vector<float>& logits, const SamplingOptions& options,
                  const std::vector<double>& weights, int draws) {
  Sampler sampler(options);
  std::vector<int> counts(logits.size());
  for (int position = 0; position < draws; ++position) {
    ++counts[static_cast<size_t>(sampler.sample(logits, position, {}))];
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double statistic = 0.0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double expected = draws * weights[i] / total;
    if (expected == 0.0) {
      EXPECT_EQ(counts[i], 0) << "token " << i << " was filtered out";
    } else {
      statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
  }
  return statistic;
}

// Successive positions are the draws, so these tests also tell whether positions are independent of each
// other. The seeds are fixed: the results never change. A statistic above the bound has a chance of one in a
// thousand.

TEST(Sampler, FollowsTheSoftmax) {
  const std::vector<float> logits = {0.0f, 1.0f, -1.0f, 2.0f, 0.5f, -2.0f, 1.5f, 0.25f, -0.5f, 1.25f};
  for (const uint64_t seed : {1u, 2u, 3u}) {
    SamplingOptions options;
    options.seed = seed;
    options.temperature = 0.8f;
    std::vector<double> weights;
    for (const float logit : logits) weights.push_back(std::exp(logit / 0.8));
    EXPECT_LT(chi_square(logits, options, weights, 100000), 27.9) << "seed " << seed;  // 9 degrees of freedom
  }
}

TEST(Sampler, FollowsTheSoftmaxOfWhatTheFiltersLeave) {
  const std::vector<float> logits = {0.0f, 1.0f, -1.0f, 2.0f, 0.5f, -2.0f, 1.5f, 0.25f, -0.5f, 1.25f};
  SamplingOptions options;
  options.seed = 4;
  options.temperature = 1.0f;
  options.top_k = 5;
  std::vector<double> weights(logits.size());
  for (const int32_t token : test::filtered(logits, options)) {
    weights[static_cast<size_t>(token)] = std::exp(logits[static_cast<size_t>(token)]);
  }
  EXPECT_LT(chi_square(logits, options, weights, 100000), 18.5);  // 4 degrees of freedom
}

TEST(Sampler, SuccessivePositionsAreIndependent) {
  Sampler sampler(with([](auto& o) {
    o.temperature = 1.0f;
    o.seed = 8;
  }));
  const std::vector<float> logits(4, 0.0f);
  constexpr int kDraws = 160000;
  std::vector<int> pairs(16);
  int32_t before = sampler.sample(logits, -1, {});
  for (int position = 0; position < kDraws; ++position) {
    const int32_t token = sampler.sample(logits, position, {});
    ++pairs[static_cast<size_t>(before * 4 + token)];
    before = token;
  }
  double statistic = 0.0;
  for (const int count : pairs)
    statistic += (count - kDraws / 16.0) * (count - kDraws / 16.0) / (kDraws / 16.0);
  EXPECT_LT(statistic, 37.7);  // 15 degrees of freedom
}

}  // namespace
}  // namespace sampler_test
}  // namespace verbatim
