#include "drafting/drafter.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

constexpr int32_t kRoot = DraftNode::kRoot;

TEST(Draft, NodesKnowTheirDepthAndHowLikelyTheirPathIs) {
  Draft draft;
  const int32_t a = draft.add(7, kRoot, 0.5f);
  const int32_t b = draft.add(8, a, 0.5f);
  const int32_t c = draft.add(9, a, 0.25f, 1);
  const int32_t d = draft.add(7, b, 1.0f);
  ASSERT_EQ(draft.size(), 4);
  const auto node = [&](int32_t i) { return draft.nodes[static_cast<size_t>(i)]; };
  EXPECT_EQ(node(a).depth, 0);
  EXPECT_EQ(node(b).depth, 1);
  EXPECT_EQ(node(c).depth, 1);
  EXPECT_EQ(node(d).depth, 2);
  EXPECT_EQ(node(c).rank, 1);
  EXPECT_FLOAT_EQ(node(a).path, 0.5f);
  EXPECT_FLOAT_EQ(node(b).path, 0.25f);
  EXPECT_FLOAT_EQ(node(c).path, 0.125f);
  EXPECT_FLOAT_EQ(node(d).path, 0.25f);
  EXPECT_FLOAT_EQ(draft.path_of(b, 0, 0.5f), 0.125f);
}

TEST(Draft, NodesOfAnotherDraftAreGraftedWithTheProbabilitiesThatTheyHaveThere) {
  Draft draft;
  const int32_t a = draft.add(7, kRoot, 0.5f);
  const int32_t tip = draft.add(8, a, 0.5f);
  draft.add(9, a, 0.25f, 1);
  Draft other;
  other.add(5, kRoot, 0.5f);
  other.add(6, 0, 0.5f);
  other.add(4, kRoot, 0.25f, 1);
  draft.graft(other, tip);
  ASSERT_EQ(draft.size(), 6);
  EXPECT_EQ(draft.child(tip, 5), 3);
  EXPECT_EQ(draft.child(3, 6), 4);
  EXPECT_EQ(draft.child(tip, 4), 5);
  EXPECT_EQ(draft.nodes[3].depth, 2);
  EXPECT_EQ(draft.nodes[4].depth, 3);
  EXPECT_FLOAT_EQ(draft.nodes[3].path, 0.125f);
  EXPECT_FLOAT_EQ(draft.nodes[4].path, 0.0625f);
  EXPECT_FLOAT_EQ(draft.nodes[5].path, 0.0625f);
  EXPECT_EQ(draft.nodes[5].rank, 1);
  draft.clear();
  draft.graft(other, kRoot);
  EXPECT_EQ(draft.child(kRoot, 5), 0);
  EXPECT_FLOAT_EQ(draft.nodes[1].path, 0.25f);
}

TEST(Draft, ChildrenAreFoundByTheirToken) {
  Draft draft;
  EXPECT_EQ(draft.child(kRoot, 7), kRoot);
  const int32_t a = draft.add(7, kRoot, 0.5f);
  const int32_t b = draft.add(8, kRoot, 0.3f, 1);
  const int32_t c = draft.add(7, a, 0.5f);
  const int32_t d = draft.add(7, b, 0.5f);
  EXPECT_EQ(draft.child(kRoot, 7), a);
  EXPECT_EQ(draft.child(kRoot, 8), b);
  EXPECT_EQ(draft.child(a, 7), c);
  EXPECT_EQ(draft.child(b, 7), d);
  EXPECT_EQ(draft.child(a, 8), kRoot);
  EXPECT_EQ(draft.child(d, 7), kRoot);
}

TEST(Draft, AChainPutBeforeItMovesEveryNodeBehindThatChain) {
  Draft draft;
  const int32_t a = draft.add(7, kRoot, 0.5f);
  draft.add(8, a, 0.5f, 0, 2);
  draft.add(9, kRoot, 0.25f, 1);
  draft.distributions.assign(3, std::vector<float>(4, 0.25f));
  draft.put_before(std::vector<int32_t>{3, 4}, 5);
  ASSERT_EQ(draft.size(), 5);
  const int32_t first = draft.child(kRoot, 3);
  const int32_t second = draft.child(first, 4);
  const int32_t moved = draft.child(second, 7);
  for (const int32_t node : {first, second}) {
    EXPECT_EQ(draft.nodes[static_cast<size_t>(node)].path, 1.0f);
    EXPECT_EQ(draft.nodes[static_cast<size_t>(node)].level, 5);
    EXPECT_TRUE(draft.distributions[static_cast<size_t>(node)].empty());
  }
  EXPECT_EQ(draft.first_child(kRoot), first);
  EXPECT_EQ(draft.nodes[static_cast<size_t>(moved)].depth, 2);
  EXPECT_EQ(draft.nodes[static_cast<size_t>(moved)].path, 0.5f);
  EXPECT_EQ(draft.distributions[static_cast<size_t>(moved)].size(), 4u);
  const int32_t leaf = draft.child(moved, 8);
  EXPECT_EQ(draft.nodes[static_cast<size_t>(leaf)].depth, 3);
  EXPECT_EQ(draft.nodes[static_cast<size_t>(leaf)].level, 2);
  EXPECT_NE(draft.child(second, 9), kRoot);
  Draft empty;
  empty.put_before(std::vector<int32_t>{3}, 5);
  EXPECT_EQ(empty.size(), 1);
  EXPECT_TRUE(empty.distributions.empty());
}

TEST(Draft, CertainTokensAreNoObservationsOfACalibration) {
  Draft draft;
  draft.add(7, draft.add(6, kRoot, 0.9f), 0.9f);
  draft.add(8, draft.add(7, kRoot, 0.9f, 1), 0.9f);
  draft.put_before(std::vector<int32_t>{3, 4}, 5);
  const std::vector<int32_t> came = {3, 4, 6, 9};
  Calibration all;
  Calibration drafted;
  Calibration expected;
  update_calibration(draft, came, all);
  update_calibration(draft, came, drafted, 2);
  expected.observe(0, 0.9f, true);
  expected.observe(1, 0.9f, false);
  expected.observe(0, 0.9f, false);
  EXPECT_EQ(drafted.mean(), expected.mean());
  EXPECT_EQ(drafted.kept(0, 0.9f), expected.kept(0, 0.9f));
  EXPECT_EQ(drafted.kept(1, 0.9f), expected.kept(1, 0.9f));
  EXPECT_NE(all.mean(), expected.mean());
}

TEST(Draft, ClearedIsEmptyAndKeepsWhatItIsAskedFor) {
  Draft draft;
  draft.want_distributions = true;
  draft.unsure = true;
  draft.add(7, kRoot, 0.5f);
  draft.distributions.emplace_back(3, 0.1f);
  draft.clear();
  EXPECT_EQ(draft.size(), 0);
  EXPECT_TRUE(draft.distributions.empty());
  EXPECT_FALSE(draft.unsure);
  EXPECT_TRUE(draft.want_distributions);
}

TEST(Draft, PathsGoByTheCalibration) {
  Calibration calibration;
  for (int i = 0; i < 500; ++i) calibration.observe(0, 0.95f, i % 2 == 0);
  Draft draft;
  draft.calibration = &calibration;
  const int32_t a = draft.add(7, kRoot, 0.95f);
  EXPECT_NEAR(draft.nodes[0].path, 0.5f, 0.05f);
  EXPECT_EQ(draft.nodes[0].confidence, 0.95f);
  draft.add(8, a, 0.95f);
  EXPECT_NEAR(draft.nodes[1].path, 0.25f, 0.05f);
}

TEST(DraftLimits, AreThoseOfTheLevel) {
  DraftLevel level;
  level.length = 5;
  level.threshold = 0.25f;
  level.breadth = 3;
  EXPECT_EQ(limits_of(level).nodes, 5);
  level.nodes = 2;
  EXPECT_EQ(limits_of(level).nodes, 5) << "a chain of the whole length always has room";
  level.nodes = 17;
  const DraftLimits limits = limits_of(level);
  EXPECT_EQ(limits.length, 5);
  EXPECT_EQ(limits.threshold, 0.25f);
  EXPECT_EQ(limits.breadth, 3);
  EXPECT_EQ(limits.nodes, 17);
  EXPECT_FALSE(limits.drop_unsure);
}

TEST(Calibration, TakesConfidenceAtItsWordAtFirst) {
  const Calibration calibration;
  for (const float confidence : {0.0f, 0.1f, 0.5f, 0.93f, 0.999f, 1.0f}) {
    EXPECT_FLOAT_EQ(calibration.kept(0, confidence), confidence);
    EXPECT_FLOAT_EQ(calibration.kept(3, confidence), confidence);
  }
}

TEST(Calibration, BelievesAsMuchOfTheDoubtAsItIsToldTo) {
  const Calibration trusting(0.5f);
  EXPECT_FLOAT_EQ(trusting.kept(0, 0.6f), 0.8f);
  EXPECT_FLOAT_EQ(trusting.kept(0, 1.0f), 1.0f);
  EXPECT_FLOAT_EQ(trusting.kept(1, 0.4f), 0.2f) << "the first choice leaves less to the second";
  EXPECT_LE(trusting.kept(0, 0.5f) + trusting.kept(1, 0.3f) + trusting.kept(2, 0.2f), 1.0f);
  const Calibration wary(2.0f);
  EXPECT_FLOAT_EQ(wary.kept(0, 0.9f), 0.8f);
  EXPECT_FLOAT_EQ(wary.kept(1, 0.9f), 0.8f);
  EXPECT_FLOAT_EQ(wary.kept(0, 0.2f), 0.1f) << "never less than half the confidence";
}

TEST(Calibration, LearnsWhatConfidenceIsWorth) {
  Calibration calibration;
  for (int i = 0; i < 1000; ++i) {
    calibration.observe(0, 0.9f, i % 10 < 6);
    calibration.observe(0, 0.3f, i % 10 < 1);
    calibration.observe(1, 0.3f, i % 10 < 2);
    calibration.observe(2, 0.3f, i % 10 < 2);
  }
  EXPECT_NEAR(calibration.kept(0, 0.9f), 0.6f, 0.06f);
  EXPECT_NEAR(calibration.kept(0, 0.3f), 0.1f, 0.06f);
  EXPECT_NEAR(calibration.kept(1, 0.3f), 0.2f, 0.06f);
  EXPECT_NEAR(calibration.kept(5, 0.3f), 0.2f, 0.06f) << "siblings count together";
  EXPECT_NEAR(calibration.kept(0, 0.995f), 0.995f, 0.01f) << "nothing is known of other confidences";
  EXPECT_NEAR(calibration.mean(), 0.35f, 0.1f) << "of first children alone";
}

TEST(Calibration, ForgetsWhatWasLongAgo) {
  Calibration calibration;
  for (int i = 0; i < 1000; ++i) calibration.observe(0, 0.9f, false);
  EXPECT_LT(calibration.kept(0, 0.9f), 0.1f);
  EXPECT_LT(calibration.mean(), 0.01f);
  for (int i = 0; i < 500; ++i) calibration.observe(0, 0.9f, true);
  EXPECT_GT(calibration.kept(0, 0.9f), 0.95f);
  EXPECT_GT(calibration.mean(), 0.99f);
}

TEST(Calibration, StaysAProbability) {
  for (const float doubt : {0.3f, 1.0f, 1.4f, 2.0f}) {
    Calibration calibration(doubt);
    for (int i = 0; i < 3000; ++i) {
      for (int step = 0; step <= 100; ++step) {
        const float confidence = static_cast<float>(step) / 100;
        for (const int32_t rank : {0, 1}) {
          EXPECT_GE(calibration.kept(rank, confidence), 0.0f);
          EXPECT_LE(calibration.kept(rank, confidence), 1.0f);
        }
        if (i % 100 == 99) calibration.observe(step % 2, confidence, i % 300 == 99);
      }
    }
  }
}

}  // namespace
}  // namespace verbatim
