#include "verbatim/top_logits.h"

#include <gtest/gtest.h>

#include "support/byte_model.h"
#include "verbatim/score.h"

namespace verbatim {
namespace top_logits_test {
namespace {

const Model& model() {
  return test::byte_pair().target;
}

std::vector<int32_t> some_text() {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 40; ++i) tokens.push_back((i * 37 + i * i % 13) % model().vocab_size());
  return tokens;
}

TEST(TopLogits, AreThoseWhoseProbabilitiesTheScoresName) {
  const std::vector<int32_t> tokens = some_text();
  const auto positions = top_logits(model(), tokens, {.top = 5, .threads = 1});
  const std::vector<ScoredToken> scored = score(model(), tokens, {.top_logprobs = 5, .threads = 1});
  ASSERT_EQ(positions.size(), tokens.size());
  for (size_t i = 0; i < scored.size(); ++i) {
    ASSERT_EQ(positions[i].size(), 5u);
    for (size_t t = 0; t < 5; ++t) {
      EXPECT_EQ(positions[i][t].token, scored[i].top[t].token);
      EXPECT_NEAR(positions[i][t].logit - positions[i][0].logit,
                  scored[i].top[t].logprob - scored[i].top[0].logprob, 1e-5);
    }
  }
}

TEST(TopLogits, AreTheSameBitForBitForEveryChunkAndNumberOfThreads) {
  const std::vector<int32_t> tokens = some_text();
  const auto expected = top_logits(model(), tokens, {.top = 1000, .threads = 1});
  for (const int64_t chunk : {1, 7, 39, 1 << 20}) {
    for (const int32_t threads : {1, 2}) {
      EXPECT_EQ(top_logits(model(), tokens, {.top = 1000, .prefill_chunk = chunk, .threads = threads}),
                expected)
          << chunk << " tokens in a pass, " << threads << " threads";
    }
  }
}

TEST(TopLogits, OfAPositionDependOnNothingBehindIt) {
  const std::vector<int32_t> tokens = some_text();
  const auto whole = top_logits(model(), tokens, {.threads = 1});
  const std::span<const int32_t> beginning(tokens.data(), 9);
  const auto part = top_logits(model(), beginning, {.threads = 1});
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin()));
}

TEST(TopLogits, NameTheWholeVocabularyWhereMoreIsAskedFor) {
  const std::vector<int32_t> tokens = {5, 6};
  const auto all = top_logits(model(), tokens, {.top = 1 << 24, .threads = 1});
  ASSERT_EQ(all.at(1).size(), static_cast<size_t>(model().vocab_size()));
  for (size_t t = 1; t < all[1].size(); ++t) EXPECT_GE(all[1][t - 1].logit, all[1][t].logit);
  const auto some = top_logits(model(), tokens, {.top = 10, .threads = 1});
  EXPECT_TRUE(std::equal(some[1].begin(), some[1].end(), all[1].begin()));
}

TEST(TopLogits, SayHowFarTheyAre) {
  std::vector<double> fractions;
  TopLogitsOptions options{.prefill_chunk = 10, .threads = 1};
  options.progress = [&](double fraction) { fractions.push_back(fraction); };
  top_logits(model(), some_text(), options);
  EXPECT_EQ(fractions, (std::vector<double>{0.25, 0.5, 0.75, 1.0}));
}

TEST(TopLogits, RefuseTextsAndOptionsThatCannotBe) {
  EXPECT_THROW(top_logits(model(), std::vector<int32_t>{}), Error);
  EXPECT_THROW(top_logits(model(), std::vector<int32_t>{260}), Error);
  EXPECT_THROW(top_logits(model(), std::vector<int32_t>{-1}), Error);
  EXPECT_THROW(top_logits(model(), std::vector<int32_t>(257, 5)), Error);
  EXPECT_THROW(top_logits(model(), std::vector<int32_t>{5}, {.top = 0}), Error);
  EXPECT_THROW(top_logits(model(), std::vector<int32_t>{5}, {.prefill_chunk = 0}), Error);
  EXPECT_THROW(top_logits(model(), std::vector<int32_t>{5}, {.threads = -1}), Error);
  EXPECT_THROW(top_logits(model(), std::vector<int32_t>{5}, {.reading = "int8-w8a8"}), Error);
}

}  // namespace
}  // namespace top_logits_test
}  // namespace verbatim
