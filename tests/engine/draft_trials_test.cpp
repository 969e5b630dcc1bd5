#include "engine/draft_trials.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

/// A batch of eight sequences whose passes take 10 milliseconds without drafts unless a test says otherwise.
struct Batch {
  double seconds_with = 0.01;     // with drafts
  double seconds_without = 0.01;  // without
  int64_t kept_with = 0;          // the tokens of drafts that are kept in a pass
  int64_t sequences = 8;
  DraftTrials trials = {};
  double now = 100;

  /// Takes passes, and returns the share of them that had drafts.
  double drafting(int passes, bool prompts = false) {
    int with = 0;
    for (int i = 0; i < passes; ++i) {
      const bool drafts = trials.drafts(sequences);
      with += drafts ? 1 : 0;
      now += drafts ? seconds_with : seconds_without;
      trials.pass(sequences, sequences, prompts, now);
      if (drafts) trials.kept(kept_with);
    }
    return static_cast<double>(with) / passes;
  }
};

TEST(DraftTrials, StayWithDraftsThatGain) {
  Batch batch{.seconds_with = 0.015, .kept_with = 5};  // 867 tokens a second instead of 800
  batch.drafting(500);
  EXPECT_GT(batch.drafting(5000), 0.97);
}

// A short text must not pay for more certainty than it can use.
TEST(DraftTrials, StayWithDraftsThatClearlyGainFromTheFirstTrialOn) {
  Batch batch{.seconds_with = 0.015, .kept_with = 8};  // 1067 tokens a second instead of 800
  EXPECT_GT(batch.drafting(150), 0.9);
}

TEST(DraftTrials, LeaveDraftsThatClearlyLoseAfterTwoTrials) {
  Batch batch{.seconds_with = 0.02, .kept_with = 3};  // 550 tokens a second instead of 800
  batch.drafting(100);
  EXPECT_LT(batch.drafting(70), 0.05);
}

TEST(DraftTrials, DoWithoutDraftsThatLoseAFewHundredths) {
  Batch batch{.seconds_with = 0.015, .kept_with = 3};  // 733 tokens a second instead of 800
  batch.drafting(500);
  EXPECT_LT(batch.drafting(5000), 0.03);
}

TEST(DraftTrials, DoWithoutDraftsThatGainNothing) {
  Batch batch{.seconds_with = 0.015, .kept_with = 4};  // 800 tokens a second, as without
  batch.drafting(500);
  EXPECT_LT(batch.drafting(5000), 0.03);
}

TEST(DraftTrials, AreNotMisledByPassesThatSomethingElseDelays) {
  Batch batch{.seconds_with = 0.015, .kept_with = 3};
  batch.drafting(500);
  int with = 0;
  for (int i = 0; i < 100; ++i) {
    batch.now += 0.6;  // a spell takes three times as long
    with += batch.drafting(251) > 0.5 ? 1 : 0;
  }
  EXPECT_EQ(with, 0);
}

TEST(DraftTrials, FollowAMachineThatBecomesSlower) {
  Batch batch{.seconds_with = 0.015, .kept_with = 3};
  batch.drafting(3000);
  batch.seconds_without = 0.02;
  batch.seconds_with = 0.03;
  EXPECT_LT(batch.drafting(3000), 0.05);
}

TEST(DraftTrials, CountPassesForAFewSequencesAsACostOfDrafts) {
  DraftTrials trials;
  double now = 0;
  int with = 0;
  for (int i = 0; i < 5000; ++i) {
    const bool drafts = trials.drafts(8);
    with += drafts ? 1 : 0;
    // With drafts all eight sequences keep three tokens, but two passes of four serve them.
    for (int part = 0; part < (drafts ? 2 : 1); ++part) {
      now += 0.01;
      trials.pass(8, drafts ? 4 : 8, false, now);
      if (drafts) trials.kept(3);
    }
  }
  EXPECT_LT(with, 250);  // 700 tokens a second instead of 800
}

TEST(DraftTrials, FindOutThatDraftsGainOnceMore) {
  Batch batch{.seconds_with = 0.015, .kept_with = 3};
  batch.drafting(5000);
  batch.kept_with = 8;
  batch.drafting(2 * 1536);
  EXPECT_GT(batch.drafting(2000), 0.9);
}

TEST(DraftTrials, KnowNothingOfBatchesOfAnotherSize) {
  Batch batch{.seconds_with = 0.02, .kept_with = 3};
  batch.drafting(400);
  EXPECT_FALSE(batch.trials.drafts(8));
  EXPECT_FALSE(batch.trials.drafts(6));
  EXPECT_TRUE(batch.trials.drafts(4));
  EXPECT_TRUE(batch.trials.drafts(9));
}

TEST(DraftTrials, CountNoPassThatReadPrompts) {
  Batch batch{.seconds_with = 0.02, .kept_with = 0};
  EXPECT_EQ(batch.drafting(500, true), 1.0);
  batch.drafting(400);
  EXPECT_FALSE(batch.trials.drafts(8));
}

TEST(DraftTrials, CountNoTimeInWhichOtherPassesTookPlace) {
  Batch batch{.seconds_with = 0.015, .kept_with = 5};
  batch.drafting(500);
  for (int i = 0; i < 1000; ++i) {
    batch.trials.interrupted();
    batch.now += 5;
    batch.drafting(2);
  }
  EXPECT_GT(batch.drafting(2000), 0.95);
}

TEST(DraftTrials, HoldForAnyNumberOfSequences) {
  DraftTrials trials;
  for (const int64_t sequences : {0, 1, 2, 128, 129, 100000}) EXPECT_TRUE(trials.drafts(sequences));
}

}  // namespace
}  // namespace verbatim
