#include "sampling/filters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampling/logits.h"
#include "sampling/reference.h"

namespace verbatim {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> kept(const std::vector<float>& logits, const SamplingOptions& options) {
  std::vector<Candidate> memory;
  const Cut cut = find_cut(logits, largest_logit(logits), options, memory);
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto token = static_cast<int32_t>(i);
    const bool possible = logits[i] > -std::numeric_limits<float>::infinity();
    if (possible && cut.keeps(logits[i], token)) tokens.push_back(token);
  }
  return tokens;
}

SamplingOptions warm() {
  SamplingOptions options;
  options.temperature = 1.0f;
  return options;
}

TEST(Filters, KeepEverythingWhenOff) {
  EXPECT_THAT(kept({1, 3, 2}, warm()), ElementsAre(0, 1, 2));
}

TEST(Filters, TopKKeepsTheSmallerTokensAmongEquals) {
  SamplingOptions options = warm();
  options.top_k = 3;
  EXPECT_THAT(kept({5, 7, 5, 5, 1}, options), ElementsAre(0, 1, 2));
}

TEST(Filters, TopPKeepsTheFewestThatReachIt) {
  SamplingOptions options = warm();
  const std::vector<float> logits = {std::log(0.1f), std::log(0.5f), std::log(0.25f), std::log(0.15f)};
  options.top_p = 0.49f;
  EXPECT_THAT(kept(logits, options), ElementsAre(1));
  options.top_p = 0.51f;
  EXPECT_THAT(kept(logits, options), ElementsAre(1, 2));
  options.top_p = 0.76f;
  EXPECT_THAT(kept(logits, options), ElementsAre(1, 2, 3));
  options.top_p = 1e-30f;
  EXPECT_THAT(kept(logits, options), ElementsAre(1));
}

TEST(Filters, TopPStopsExactlyAtTheProbabilityItReaches) {
  SamplingOptions options = warm();
  options.top_p = 0.5f;
  EXPECT_THAT(kept({2, 2, 2, 2}, options), ElementsAre(0, 1));
  options.top_p = 0.75f;
  EXPECT_THAT(kept(std::vector<float>(4096, 1.0f), options), ::testing::SizeIs(3072));
}

TEST(Filters, TopPCountsProbabilitiesAmongWhatTopKLeft) {
  SamplingOptions options = warm();
  options.top_k = 2;
  options.top_p = 0.6f;
  // 0.4 of all is 0.57 of the two that are left; 0.3 more is needed.
  const std::vector<float> logits = {std::log(0.4f), std::log(0.3f), std::log(0.3f)};
  EXPECT_THAT(kept(logits, options), ElementsAre(0, 1));
  options.top_p = 0.57f;
  EXPECT_THAT(kept(logits, options), ElementsAre(0));
}

TEST(Filters, MinPIsRelativeToTheMostLikely) {
  SamplingOptions options = warm();
  options.min_p = 0.4f;
  EXPECT_THAT(kept({std::log(0.5f), std::log(0.21f), std::log(0.19f)}, options), ElementsAre(0, 1));
  options.min_p = 1.0f;
  EXPECT_THAT(kept({3, 1, 3}, options), ElementsAre(0, 2));
}

TEST(Filters, IgnoreNaNAndMinusInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float none = -std::numeric_limits<float>::infinity();
  SamplingOptions options = warm();
  options.top_k = 2;
  options.top_p = 0.99f;
  EXPECT_THAT(kept({nan, none, 1, nan, 2, 3}, options), ElementsAre(4, 5));
  options.top_k = 5;
  EXPECT_THAT(kept({nan, none, 1, nan, 2, 3}, options), ElementsAre(2, 4, 5));
}

TEST(Filters, AgreeWithTheirDefinitions) {
  std::mt19937 random(7);
  const auto pick = [&](auto... values) {
    const std::vector<float> all = {static_cast<float>(values)...};
    return all[random() % all.size()];
  };
  for (int round = 0; round < 1500; ++round) {
    SamplingOptions options;
    options.temperature = pick(0.1, 0.8, 1.0, 2.5);
    options.top_k = static_cast<int32_t>(pick(0, 1, 2, 40, 64, 300, 100000));
    options.top_p = pick(1, 1, 0.01, 0.3, 0.9, 0.95, 0.999);
    options.min_p = pick(0, 0, 0.013, 0.11, 0.9);
    const auto count = static_cast<size_t>(pick(1, 2, 31, 33, 500, 3000, 12345));
    const auto steps = static_cast<int>(pick(0, 0, 3, 50));
    const std::vector<float> logits = test::random_logits(random, count, pick(0.01, 1, 4), steps);
    std::vector<int32_t> expected = test::filtered(logits, options);
    std::sort(expected.begin(), expected.end());
    ASSERT_TRUE(kept(logits, options) == expected)
        << "round " << round << ": " << count << " logits, temperature " << options.temperature << ", top-k "
        << options.top_k << ", top-p " << options.top_p << ", min-p " << options.min_p;
  }
}

TEST(Filters, HoldAtExtremeTemperatures) {
  SamplingOptions options;
  options.top_p = 0.9f;
  options.min_p = 0.5f;
  std::vector<float> logits(5000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 100);
  options.temperature = 1e-45f;
  EXPECT_THAT(kept(logits, options), ::testing::SizeIs(45));  // nine tenths of the 50 most likely
  options.temperature = 1e38f;
  EXPECT_THAT(kept(logits, options), ::testing::SizeIs(4500));
}

}  // namespace
}  // namespace verbatim
