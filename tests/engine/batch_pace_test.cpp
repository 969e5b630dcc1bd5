#include "engine/batch_pace.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

/// Passes over eight rows that take a tenth of a second, and drafts nine of ten of which are kept.
BatchPace eighty_a_second() {
  BatchPace pace;
  for (int i = 0; i < 200; ++i) {
    pace.whole_pass(8, 0.1);
    pace.step(9, true);
  }
  return pace;
}

TEST(FadingPassCost, TakesARowForAShareOfAPassUntilItHasSeenOthers) {
  FadingPassCost cost;
  EXPECT_FALSE(cost.known());
  for (int i = 0; i < 20; ++i) cost.observe(8, 0.72);
  EXPECT_TRUE(cost.known());
  EXPECT_NEAR(cost.of(8), 0.72, 1e-12);
  EXPECT_NEAR(cost.row(), 0.01, 1e-12);  // 1/64 of what a pass without rows would take
  EXPECT_NEAR(cost.of(16), 0.8, 1e-12);
}

TEST(FadingPassCost, FindsWhatARowTakes) {
  FadingPassCost cost;
  for (int i = 0; i < 200; ++i) {
    const int64_t rows = 8 + 24 * (i % 3);
    cost.observe(rows, 0.1 + 0.005 * static_cast<double>(rows));
  }
  EXPECT_NEAR(cost.row(), 0.005, 0.0002);
  EXPECT_NEAR(cost.of(40), 0.3, 0.01);
}

TEST(FadingPassCost, ForgetsWhatTheMachineWasLike) {
  FadingPassCost cost;
  for (int i = 0; i < 100; ++i) cost.observe(8, 1.0);
  for (int i = 0; i < 200; ++i) cost.observe(8, 0.1);
  EXPECT_NEAR(cost.of(8), 0.1, 1e-3);
}

TEST(FadingPassCost, IsNeverBelowZero) {
  FadingPassCost cost;
  for (int i = 0; i < 200; ++i) cost.observe(i % 2 == 0 ? 8 : 64, i % 2 == 0 ? 1.0 : 0.5);
  EXPECT_EQ(cost.row(), 0.0);
  EXPECT_GT(cost.of(1000), 0.0);
}

TEST(BatchPace, LetsAllDraftWhileItKnowsNothing) {
  BatchPace pace;
  EXPECT_TRUE(pace.pays(0.0, 8, 8, 8));
  EXPECT_EQ(pace.keep_thresholds(8).path, 0.0);
  pace.whole_pass(8, 0.1);
  EXPECT_TRUE(pace.pays(0.0, 8, 8, 8)) << "nobody knows yet what drafts take";
}

// A row takes 0.1 / 72 seconds. A draft of one token takes all of them 0.2 seconds and 0.011 for the rows,
// and brings 7.2 tokens, no more than 34 a second.
TEST(BatchPace, DecodesPlainlyWhereDraftsAreDear) {
  BatchPace pace = eighty_a_second();
  for (int i = 0; i < 50; ++i) pace.draft_pass(8, 0.2);
  EXPECT_FALSE(pace.pays(8.0, 8, 8, 8));
  EXPECT_FALSE(pace.pays(80.0 * 0.2, 8, 8, 8));
  EXPECT_TRUE(pace.pays(80.0 * 0.22, 8, 8, 8));
}

TEST(BatchPace, EndsADraftWhereTheBestOneWouldEnd) {
  BatchPace pace = eighty_a_second();
  for (int i = 0; i < 50; ++i) pace.draft_pass(8, 0.03);
  // With drafts of four, 8 + 7.2 + 6.48 + 5.83 + 5.25 tokens in 0.1 + 0.12 + 32 / 720 seconds; with others
  // fewer a second.
  const double rate = 32.761 / 0.26444;
  const double pass = 0.03 + 8 * 0.1 / 72;
  EXPECT_FALSE(pace.pays(0.99 * rate * pass, 8, 8, 8));
  EXPECT_TRUE(pace.pays(1.01 * rate * pass, 8, 8, 8));
  EXPECT_TRUE(pace.pays(8 * 0.81, 8, 8, 8));
  EXPECT_FALSE(pace.pays(8 * 0.53, 8, 8, 8));
  // Few rows take hardly less than many: a pass for two of the eight has to bring nearly as much.
  EXPECT_FALSE(pace.pays(2.0, 2, 2, 8));
}

TEST(BatchPace, AsksLessWhereFewerSequencesWait) {
  BatchPace pace = eighty_a_second();
  for (int i = 0; i < 50; ++i) pace.draft_pass(8, 0.03);
  EXPECT_FALSE(pace.pays(1.8, 2, 2, 8));
  EXPECT_TRUE(pace.pays(1.8, 2, 2, 2));
  EXPECT_LT(pace.keep_thresholds(2).path, pace.keep_thresholds(8).path);
}

TEST(BatchPace, AsksLessOfATokenThanOfAPass) {
  BatchPace pace = eighty_a_second();
  for (int i = 0; i < 50; ++i) pace.draft_pass(8, 0.03);
  EXPECT_NEAR(pace.keep_thresholds(8).path, 32.761 / 0.26444 * 0.13 / 72 / 0.9, 0.005);
  EXPECT_NEAR(pace.keep_thresholds(8).leaf, 32.761 / 0.26444 * 0.1 / 72, 0.005);
}

TEST(BatchPace, AsksMoreWhereRowsAreDear) {
  BatchPace cheap = eighty_a_second();
  BatchPace dear;
  for (int i = 0; i < 200; ++i) {
    const int64_t rows = 8 + 4 * (i % 4);
    dear.whole_pass(rows, 0.005 * static_cast<double>(rows));
    dear.step(9, true);
  }
  for (BatchPace* const pace : {&cheap, &dear}) {
    for (int i = 0; i < 50; ++i) pace->draft_pass(8, 0.02);
  }
  EXPECT_GT(dear.keep_thresholds(8).path, 2 * cheap.keep_thresholds(8).path);
}

TEST(BatchPace, LearnsHowManyAreKept) {
  BatchPace sure = eighty_a_second();
  BatchPace unsure = eighty_a_second();
  for (int i = 0; i < 500; ++i) unsure.step(0, true);
  for (BatchPace* const pace : {&sure, &unsure}) {
    for (int i = 0; i < 50; ++i) pace->draft_pass(8, 0.03);
  }
  // Where drafts are not kept there is nothing to gain but what plain decoding gains.
  EXPECT_NEAR(unsure.keep_thresholds(8).leaf, 80.0 * 0.1 / 72, 0.001);
  EXPECT_GT(sure.keep_thresholds(8).leaf, unsure.keep_thresholds(8).leaf);
  EXPECT_GT(unsure.keep_thresholds(8).path, sure.keep_thresholds(8).path);
}

// Rows that only catch up with what was accepted are not verified.
TEST(BatchPace, ChargesVerificationForWhatIsVerified) {
  BatchPace pace = eighty_a_second();
  for (int i = 0; i < 50; ++i) pace.draft_pass(8, 0.03);
  const double limit = 32.761 / 0.26444 * (0.03 + 8 * 0.03 / 72 + 8 * 0.1 / 72);
  EXPECT_TRUE(pace.pays(1.02 * limit, 16, 8, 8));
  EXPECT_FALSE(pace.pays(0.98 * limit, 16, 8, 8));
}

// While it declines all drafts it hears nothing of them.
TEST(BatchPace, TriesAgainWhenDraftsMayHaveBecomeQuicker) {
  BatchPace pace = eighty_a_second();
  for (int i = 0; i < 50; ++i) pace.draft_pass(8, 0.3);
  int trials = 0;
  for (int i = 0; i < 400; ++i) {
    pace.whole_pass(8, 0.1);
    if (!pace.pays(7.2, 8, 8, 8)) continue;
    ++trials;
    pace.draft_pass(8, 0.3);
  }
  EXPECT_GT(trials, 8);
  EXPECT_LT(trials, 16);
  for (int i = 0; i < 400; ++i) {
    pace.whole_pass(8, 0.1);
    if (pace.pays(7.2, 8, 8, 8)) pace.draft_pass(8, 0.03);
  }
  EXPECT_TRUE(pace.pays(7.2, 8, 8, 8));
}

}  // namespace
}  // namespace verbatim
