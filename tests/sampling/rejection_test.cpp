#include "sampling/rejection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sampling/reference.h"
#include "sampling/sampler.h"
#include "verbatim/error.h"

namespace verbatim {
namespace rejection_test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> distribution(const SamplingOptions& options, const std::vector<float>& logits,
                                const std::vector<int32_t>& history = {}) {
  std::vector<float> probabilities;
  EXPECT_TRUE(Sampler(options).distribution(logits, history, probabilities));
  return probabilities;
}

SamplingOptions at(float temperature, uint64_t seed = 0) {
  SamplingOptions options;
  options.temperature = temperature;
  options.seed = seed;
  return options;
}

TEST(Distribution, IsTheSoftmaxOfWhatTheFiltersLeave) {
  std::mt19937 random(31);
  for (int round = 0; round < 300; ++round) {
    SamplingOptions options = at(std::vector{0.2f, 0.8f, 1.7f}[random() % 3]);
    options.top_k = std::vector{0, 0, 5, 40}[random() % 4];
    options.top_p = std::vector{1.0f, 0.5f, 0.95f}[random() % 3];
    options.min_p = std::vector{0.0f, 0.07f}[random() % 2];
    std::vector<float> logits =
        test::random_logits(random, 1 + random() % 3000, 2.0f, round % 2 == 0 ? 4 : 0);
    for (size_t i = 1; i < logits.size(); i += 7) logits[i] = i % 2 == 0 ? kNaN : -kInfinity;
    const std::vector<int32_t> left = test::filtered(logits, options);
    std::vector<double> expected(logits.size());
    double total = 0.0;
    for (const int32_t token : left) {
      const auto i = static_cast<size_t>(token);
      total += expected[i] =
          std::exp((double{logits[i]} - logits[static_cast<size_t>(left[0])]) / options.temperature);
    }
    const std::vector<float> found = distribution(options, logits);
    for (size_t i = 0; i < logits.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i] / total, 2e-6) << "round " << round << ", token " << i;
      ASSERT_EQ(found[i] > 0.0f, expected[i] > 0.0) << "round " << round << ", token " << i;
    }
  }
}

TEST(Distribution, IsCertainAtTemperatureZeroAndBesideAnInfiniteLogit) {
  EXPECT_EQ(distribution(at(0.0f), {1, 3, 3}), (std::vector<float>{0, 1, 0}));
  EXPECT_EQ(distribution(at(1.0f), {1, 3, kInfinity, kInfinity}), (std::vector<float>{0, 0, 1, 0}));
}

TEST(Distribution, HearsTheRepetitionPenalty) {
  SamplingOptions options;
  options.repetition_penalty = 2.0f;
  EXPECT_EQ(distribution(options, {4, 3}, {0, 7, -1}), (std::vector<float>{0, 1}));
}

TEST(Distribution, IsZeroWithoutAnyUsableLogit) {
  std::vector<float> probabilities = {1.0f};
  EXPECT_FALSE(Sampler(at(1.0f)).distribution(std::vector<float>{kNaN, -kInfinity}, {}, probabilities));
  EXPECT_EQ(probabilities, (std::vector<float>{0, 0}));
}

TEST(Rejection, KeepsWhatTheModelFindsAtLeastAsLikely) {
  for (int64_t position = 0; position < 1000; ++position) {
    ASSERT_TRUE(keep_draft(0.3f, 0.3f, 1, position));
    ASSERT_TRUE(keep_draft(0.3f, 0.0f, 1, position));
    ASSERT_FALSE(keep_draft(0.0f, 0.3f, 1, position));
    ASSERT_FALSE(keep_draft(kNaN, 0.3f, 1, position));
  }
}

TEST(Rejection, IsTheSameForTheSameSeedAndPosition) {
  const std::vector<float> p(1000, 0.001f);
  EXPECT_EQ(sample_residual(p, {}, 5, 6), sample_residual(p, {}, 5, 6));
  EXPECT_NE(sample_residual(p, {}, 5, 6), sample_residual(p, {}, 5, 7));
  EXPECT_NE(sample_residual(p, {}, 5, 6), sample_residual(p, {}, 6, 6));
}

TEST(Rejection, DrawsFromTheModelWhereRoundingLeavesNoDifference) {
  const std::vector<float> p = {0.0f, 1.0f, 0.0f};
  EXPECT_EQ(sample_residual(p, p, 0, 0), 1);
  EXPECT_THROW(sample_residual(std::vector<float>(3), p, 0, 0), Error);
  EXPECT_THROW(sample_residual({}, {}, 0, 0), Error);
}

/// Drafts from `draft`, keeps or replaces, at so many positions; the chi-square statistic of the outcome
/// against `model`'s distribution, and how many drafts were kept.
struct Outcome {
  double statistic;
  double kept;
};

Outcome decode(const SamplingOptions& options, const std::vector<float>& model,
               const std::vector<float>& draft) {
  constexpr int kPositions = 200000;
  const std::vector<float> p = distribution(options, model);
  const std::vector<float> q = distribution(options, draft);
  Sampler sampler(options);
  std::vector<int> counts(p.size());
  int kept = 0;
  for (int64_t position = 0; position < kPositions; ++position) {
    int32_t token = sampler.sample(draft, position, {});
    const auto drafted = static_cast<size_t>(token);
    if (keep_draft(p[drafted], q[drafted], options.seed, position)) {
      ++kept;
    } else {
      token = sample_residual(p, q, options.seed, position);
    }
    ++counts[static_cast<size_t>(token)];
  }
  double statistic = 0.0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double expected = kPositions * double{p[i]};
    if (expected == 0.0) {
      EXPECT_EQ(counts[i], 0) << "token " << i << " was filtered out";
    } else {
      statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
  }
  return {statistic, kept / double{kPositions}};
}

const std::vector<float> kModel = {0.0f, 1.0f, -1.0f, 2.0f, 0.5f, -2.0f, 1.5f, 0.25f, -0.5f, 1.25f};

// The seeds are fixed: the results never change. A statistic above a bound has a chance of one in a thousand.

TEST(Rejection, DrawsFromTheModelWhateverTheDraft) {
  std::mt19937 random(6);
  for (const float error : {0.0f, 0.5f, 2.0f}) {
    const SamplingOptions options = at(0.8f, random());
    std::vector<float> draft = kModel;
    const std::vector<float> errors = test::random_logits(random, draft.size(), error);
    double most = 0.0;
    for (size_t i = 0; i < draft.size(); ++i) draft[i] += errors[i];
    const std::vector<float> p = distribution(options, kModel);
    const std::vector<float> q = distribution(options, draft);
    for (size_t i = 0; i < p.size(); ++i) most += std::min(p[i], q[i]);
    const Outcome outcome = decode(options, kModel, draft);
    EXPECT_LT(outcome.statistic, 27.9) << "error " << error;  // 9 degrees of freedom
    EXPECT_NEAR(outcome.kept, most, 0.005) << "error " << error;
  }
}

TEST(Rejection, DrawsFromTheFilteredModel) {
  SamplingOptions options = at(1.0f, 12);
  options.top_k = 5;
  std::vector<float> draft(kModel.rbegin(), kModel.rend());
  EXPECT_LT(decode(options, kModel, draft).statistic, 18.5);  // 4 degrees of freedom
}

TEST(Rejection, DrawsFromTheModelWhenTheDraftIsCertain) {
  std::vector<float> draft(kModel.size());
  draft[1] = kInfinity;
  EXPECT_LT(decode(at(1.0f, 13), kModel, draft).statistic, 27.9);
}

TEST(Rejection, DrawsFromTheModelWhenTheDraftHasASmallerVocabulary) {
  EXPECT_LT(decode(at(1.0f, 14), kModel, {0.0f, 1.0f, 2.0f}).statistic, 27.9);
}

// Leviathan's rule must not know the noise that the draft was drawn with, nor the residual that of the test.
TEST(Rejection, SuccessiveTokensAreIndependent) {
  const SamplingOptions options = at(1.0f, 8);
  const std::vector<float> model(4, 0.0f);
  const std::vector<float> draft = {1.0f, 0.0f, 0.0f, -1.0f};
  const std::vector<float> p = distribution(options, model);
  const std::vector<float> q = distribution(options, draft);
  Sampler sampler(options);
  constexpr int kDraws = 160000;
  std::vector<int> pairs(16);
  int32_t before = 0;
  for (int position = 0; position < kDraws; ++position) {
    int32_t token = sampler.sample(draft, position, {});
    const auto drafted = static_cast<size_t>(token);
    if (!keep_draft(p[drafted], q[drafted], options.seed, position)) {
      token = sample_residual(p, q, options.seed, position);
    }
    ++pairs[static_cast<size_t>(before * 4 + token)];
    before = token;
  }
  double statistic = 0.0;
  for (const int count : pairs)
    statistic += (count - kDraws / 16.0) * (count - kDraws / 16.0) / (kDraws / 16.0);
  EXPECT_LT(statistic, 37.7);  // 15 degrees of freedom
}

}  // namespace
}  // namespace rejection_test
}  // namespace verbatim
