#include "engine/batch_pace.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

/// Eight sequences that gain a token each in a tenth of a second, again and again.
BatchPace eighty_a_second() {
  BatchPace pace;
  for (int round = 1; round <= 50; ++round) {
    pace.whole_pass(8, 0.1, 0.1 * round);
    for (int sequence = 0; sequence < 8; ++sequence) pace.step(1);
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
  for (int i = 0; i < 100; ++i) cost.observe(8, 0.1);
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
  EXPECT_TRUE(pace.pays(0.0, 8));
  EXPECT_EQ(pace.least_path(), 0.0);
  pace.whole_pass(8, 0.1, 1.0);
  pace.step(8);
  EXPECT_TRUE(pace.pays(0.0, 8)) << "nobody knows yet what drafts take";
}

TEST(BatchPace, PaysForDraftsThatBringMoreThanTheirTimeWould) {
  BatchPace pace = eighty_a_second();
  for (int i = 0; i < 50; ++i) pace.draft_pass(8, 0.03);
  // 2.4 tokens in 0.03 seconds, and 0.9 for the rows that verify them: 8 times 0.1 / 72 seconds
  EXPECT_FALSE(pace.pays(3.2, 8));
  EXPECT_TRUE(pace.pays(3.4, 8));
  // Few rows take hardly less than many: a pass for two sequences alone has to bring nearly as much.
  EXPECT_FALSE(pace.pays(2.0, 2));
}

TEST(BatchPace, AsksLessOfATokenThanOfAPass) {
  BatchPace pace = eighty_a_second();
  for (int i = 0; i < 50; ++i) pace.draft_pass(8, 0.03);
  // 80 tokens a second by (0.1 + 0.03) / 72 seconds a row
  EXPECT_NEAR(pace.least_path(), 0.144, 0.01);
}

TEST(BatchPace, AsksMoreWhereRowsAreDear) {
  BatchPace pace = eighty_a_second();
  double now = 5.0;
  for (int round = 0; round < 100; ++round) {
    const int64_t rows = 8 + 4 * (round % 4);
    const double seconds = 0.005 * static_cast<double>(rows);
    now += seconds;
    pace.whole_pass(rows, seconds, now);
    pace.step(8);
    pace.draft_pass(8, 0.02);
  }
  EXPECT_GT(pace.least_path(), 0.45);
}

TEST(BatchPace, CountsNoPauses) {
  BatchPace pace = eighty_a_second();
  for (int i = 0; i < 50; ++i) pace.draft_pass(8, 0.03);
  const double before = pace.least_path();
  pace.pause();
  pace.whole_pass(8, 0.1, 1000.0);
  EXPECT_EQ(pace.least_path(), before);
}

}  // namespace
}  // namespace verbatim
