#include "drafting/ngram_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "checkpoint/bad_input.h"
#include "support/test_data.h"

namespace verbatim {
namespace ngram_drafter_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int32_t kVocabulary = 1000;
using Tokens = std::vector<int32_t>;

DraftLevel level(int32_t shortest = 2, int32_t longest = 4) {
  DraftLevel level;
  level.kind = DraftLevel::Kind::kNgram;
  level.shortest_match = shortest;
  level.longest_match = longest;
  return level;
}

DraftLimits limits(int32_t length, int32_t breadth = 1, int32_t nodes = 0) {
  return {.length = length, .breadth = breadth, .nodes = nodes == 0 ? length : nodes};
}

Draft propose(NgramDrafter& drafter, const Tokens& tokens, const DraftLimits& limits, int64_t room = 100) {
  Draft draft;
  drafter.propose(tokens, limits, room, draft);
  return draft;
}

/// The tokens of the nodes, in their order.
Tokens tokens_of(const Draft& draft) {
  Tokens tokens;
  for (const DraftNode& node : draft.nodes) tokens.push_back(node.token);
  return tokens;
}

Tokens drafted(NgramDrafter& drafter, const Tokens& tokens, int32_t length) {
  return tokens_of(propose(drafter, tokens, limits(length)));
}

Tokens random_tokens(std::mt19937& random, size_t count, uint32_t vocabulary) {
  Tokens tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % vocabulary);
  return tokens;
}

Tokens joined(Tokens first, const Tokens& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(NgramDrafter, ContinuesAsTheSequenceDidBefore) {
  NgramDrafter drafter(level(), kVocabulary);
  const Tokens tokens = {1, 2, 3, 4, 5, 6, 7, 1, 2};
  EXPECT_THAT(drafted(drafter, tokens, 4), IsEmpty());  // nothing is known yet
  drafter.observe(tokens);
  EXPECT_THAT(drafted(drafter, tokens, 4), ElementsAre(3, 4, 5, 6));
  // Beyond the end of what was seen it goes round: drafted tokens are context for the next.
  EXPECT_THAT(drafted(drafter, tokens, 9), ElementsAre(3, 4, 5, 6, 7, 1, 2, 3, 4));
}

TEST(NgramDrafter, DraftsNothingBehindTheEnd) {
  NgramDrafter drafter(level(), kVocabulary);
  const Tokens tokens = {1, 2, 3, 4, 5, 6, 7, 1, 2};
  drafter.observe(tokens);
  const Sampler sampler(SamplingOptions{}, {.ends = {5}});
  Draft draft;
  drafter.propose(tokens, limits(6, 3, 12), 100, draft, &sampler);
  const Tokens found = tokens_of(draft);
  EXPECT_THAT(found, ::testing::Contains(5));
  EXPECT_THAT(found, ::testing::Not(::testing::Contains(6)));
}

TEST(NgramDrafter, SaysWhenItDoesNotKnowOn) {
  NgramDrafter drafter(level(), kVocabulary);
  const Tokens tokens = {1, 2, 3, 4};
  drafter.observe(tokens);
  const Draft none = propose(drafter, tokens, limits(4));
  EXPECT_THAT(none.nodes, IsEmpty());
  EXPECT_TRUE(none.unsure);
  const Draft some = propose(drafter, {1, 2}, limits(4));
  EXPECT_THAT(tokens_of(some), ElementsAre(3, 4));
  EXPECT_TRUE(some.unsure);
  EXPECT_FALSE(propose(drafter, {1, 2}, limits(2)).unsure);
}

TEST(NgramDrafter, GoesByTheLongerMatchWhereTheShorterIsAmbiguous) {
  NgramDrafter drafter(level(1, 3), kVocabulary);
  Tokens tokens;
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    // After 7 anything may come; after 1 7 it is 2, after 3 7 it is 4.
    const Tokens phrase = random() % 2 == 0 ? Tokens{1, 7, 2} : Tokens{3, 7, 4};
    tokens = joined(tokens, phrase);
  }
  drafter.observe(tokens);
  EXPECT_THAT(drafted(drafter, {9, 1, 7}, 1), ElementsAre(2));
  EXPECT_THAT(drafted(drafter, {9, 3, 7}, 1), ElementsAre(4));
  const Draft sure = propose(drafter, {9, 3, 7}, limits(1));
  EXPECT_GT(sure.nodes[0].confidence, 0.9f);
  const Draft unsure = propose(drafter, {9, 7}, limits(1));
  EXPECT_LT(unsure.nodes[0].confidence, 0.7f);
}

TEST(NgramDrafter, IsAsConfidentAsItIsRight) {
  NgramDrafter drafter(level(1, 2), kVocabulary);
  std::mt19937 random(4);
  Tokens tokens;
  double promised = 0.0;
  double kept = 0.0;
  double guesses = 0.0;
  for (int i = 0; i < 6000; ++i) {
    // After an even token comes its successor four times out of five, after an odd one anything.
    const int32_t last = tokens.empty() ? 0 : tokens.back();
    const bool goes_on = last % 2 == 0 && random() % 5 < 4;
    const int32_t next = goes_on ? last + 1 : static_cast<int32_t>(random() % 20);
    if (i > 3000) {
      const Draft draft = propose(drafter, tokens, limits(1));
      if (!draft.nodes.empty()) {
        promised += draft.nodes[0].confidence;
        kept += draft.nodes[0].token == next ? 1.0 : 0.0;
        guesses += 1.0;
      }
    }
    tokens.push_back(next);
    drafter.observe(tokens);
  }
  EXPECT_GT(guesses, 2900.0);
  EXPECT_NEAR(promised / guesses, kept / guesses, 0.06);
}

TEST(NgramDrafter, HasNoConfidenceInNoise) {
  NgramDrafter drafter(level(1, 3), kVocabulary);
  std::mt19937 random(5);
  const Tokens tokens = random_tokens(random, 4000, 50);
  drafter.observe(tokens);
  DraftLimits most = limits(8);
  most.threshold = 0.3f;
  EXPECT_LE(propose(drafter, tokens, most).size(), 1);
  most.path_threshold = 0.3f;
  const Draft none = propose(drafter, tokens, most);
  EXPECT_EQ(none.size(), 0);
  EXPECT_TRUE(none.unsure);
}

TEST(NgramDrafter, StopsAfterATokenBelowTheThreshold) {
  NgramDrafter drafter(level(), kVocabulary);
  const Tokens tokens = {1, 2, 3, 4, 5, 6, 1, 2};
  drafter.observe(tokens);
  DraftLimits strict = limits(4);
  strict.threshold = 1.0f;
  const Draft draft = propose(drafter, tokens, strict);
  EXPECT_THAT(tokens_of(draft), ElementsAre(3));
  EXPECT_TRUE(draft.unsure);
}

TEST(NgramDrafter, KeepsToItsLimits) {
  NgramDrafter drafter(level(1, 3), kVocabulary);
  std::mt19937 random(6);
  Tokens tokens = random_tokens(random, 2000, 12);
  drafter.observe(tokens);
  int branched = 0;
  for (int round = 0; round < 2000; ++round) {
    DraftLimits some = limits(static_cast<int32_t>(random() % 10), static_cast<int32_t>(1 + random() % 9),
                              static_cast<int32_t>(random() % 20));
    if (random() % 2 == 0) some.threshold = 0.2f;
    if (random() % 2 == 0) some.path_threshold = some.leaf_threshold = 0.01f;
    const auto room = static_cast<int64_t>(random() % 12);
    const Tokens context = random_tokens(random, random() % 6, 12);
    const Draft draft = propose(drafter, context, some, room);
    ASSERT_LE(draft.size(), some.nodes);
    std::vector<Tokens> children(draft.nodes.size() + 1);
    std::vector<float> reached(draft.nodes.size());
    std::vector<float> sums(draft.nodes.size() + 1);
    for (size_t i = 0; i < draft.nodes.size(); ++i) {
      const DraftNode& node = draft.nodes[i];
      ASSERT_LT(node.parent, static_cast<int32_t>(i));
      ASSERT_LT(node.depth, std::min<int64_t>(some.length, room));
      ASSERT_GE(node.confidence, 0.0f);
      ASSERT_LE(node.confidence, 1.0f);
      const auto parent = static_cast<size_t>(node.parent + 1);
      reached[i] = node.confidence;
      if (node.parent != DraftNode::kRoot) {
        const DraftNode& before = draft.nodes[parent - 1];
        ASSERT_EQ(node.depth, before.depth + 1);
        ASSERT_GE(before.confidence, some.threshold);
        reached[i] *= reached[parent - 1];
      }
      ASSERT_GE(reached[i], some.path_threshold);
      ASSERT_THAT(children[parent], ::testing::Not(::testing::Contains(node.token)));
      children[parent].push_back(node.token);
      sums[parent] += node.confidence;
      ASSERT_LE(sums[parent], 1.001f);
      ASSERT_LE(children[parent].size(), static_cast<size_t>(some.breadth));
      branched += children[parent].size() > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(branched, 1000);
}

TEST(NgramDrafter, PutsTheNextBestBesideTheBest) {
  NgramDrafter drafter(level(1, 1), kVocabulary);
  drafter.observe(Tokens{1, 2, 1, 3, 1, 2, 1, 2, 1});
  const Draft draft = propose(drafter, {1}, limits(1, 3, 3));
  ASSERT_EQ(draft.size(), 2);
  EXPECT_EQ(draft.nodes[0].token, 2);
  EXPECT_EQ(draft.nodes[1].token, 3);
  EXPECT_GT(draft.nodes[0].confidence, draft.nodes[1].confidence);
  EXPECT_EQ(draft.nodes[1].parent, DraftNode::kRoot);
}

/// What was counted after the last token of `context` by a drafter of order 1.
int count_after(const NgramDrafter& drafter, int32_t context) {
  NgramTable::Keys keys;
  if (drafter.table().hash(std::span(&context, 1), keys) == 0) return 0;
  const auto* followers = drafter.table().find(0, keys[0]);
  return followers == nullptr ? 0 : followers->total();
}

TEST(NgramDrafter, LearnsEveryTokenOnce) {
  NgramDrafter drafter(level(1, 1), kVocabulary);
  Tokens tokens;
  std::mt19937 random(8);
  for (int i = 0; i < 100; ++i) {
    tokens.push_back(i % 2 == 0 ? 1 : 2);
    if (random() % 3 == 0) drafter.observe(tokens);
  }
  drafter.observe(tokens);
  drafter.observe(tokens);
  EXPECT_EQ(count_after(drafter, 1), 50);
  EXPECT_EQ(count_after(drafter, 2), 49);
}

TEST(NgramDrafter, DoesNotLearnTwiceWhatIsTakenBackAndSaidAgain) {
  NgramDrafter drafter(level(1, 1), kVocabulary);
  const Tokens tokens = {1, 2, 1, 3, 1, 4, 1, 5};
  drafter.observe(tokens);
  EXPECT_EQ(count_after(drafter, 1), 4);
  drafter.observe(Tokens(tokens.begin(), tokens.begin() + 3));
  drafter.observe(Tokens(tokens.begin(), tokens.begin() + 5));
  drafter.observe(tokens);
  EXPECT_EQ(count_after(drafter, 1), 4);
  // From where it differs all is new.
  drafter.observe(Tokens{1, 2, 1, 3, 1, 6, 1, 5});
  EXPECT_EQ(count_after(drafter, 1), 6);
  drafter.observe(Tokens{1, 2, 1, 3, 1, 6, 1, 5, 1, 5});
  EXPECT_EQ(count_after(drafter, 1), 7);
}

TEST(NgramDrafter, LearnsAnotherSequenceOfTheSameLength) {
  NgramDrafter drafter(level(1, 1), kVocabulary);
  drafter.observe(Tokens(100, 1));
  drafter.observe(Tokens(100, 2));
  EXPECT_EQ(count_after(drafter, 1), 99);
  EXPECT_EQ(count_after(drafter, 2), 99);
  drafter.observe(Tokens{});
  EXPECT_EQ(count_after(drafter, 2), 99);
}

TEST(NgramDrafter, TrustsTheTableThatTurnsOutRight) {
  const test::TemporaryFolder folder;
  NgramTable counted({1, 2, 256, kVocabulary});
  for (int i = 0; i < 100; ++i) counted.learn(Tokens{1, 2, 3, 4, 1});
  counted.save(folder.path() / "table");
  DraftLevel from_table = level(1, 2);
  from_table.table = folder.path() / "table";
  NgramDrafter drafter(from_table, kVocabulary);
  const Tokens start = {7, 1};
  EXPECT_THAT(drafted(drafter, start, 3), ElementsAre(2, 3, 4));
  // Here it goes the other way round, however often the table was told otherwise.
  Tokens tokens = start;
  for (int i = 0; i < 20; ++i) tokens = joined(tokens, {4, 3, 2, 1});
  drafter.observe(tokens);
  EXPECT_THAT(drafted(drafter, tokens, 4), ElementsAre(4, 3, 2, 1));
}

TEST(NgramDrafter, StartsFromATable) {
  const test::TemporaryFolder folder;
  NgramTable counted({1, 3, 256, kVocabulary});
  counted.learn(Tokens{10, 11, 12, 13, 14, 15});
  counted.save(folder.path() / "table");
  DraftLevel from_table = level(2, 4);
  from_table.table = folder.path() / "table";
  NgramDrafter drafter(from_table, kVocabulary);
  EXPECT_THAT(drafted(drafter, {10, 11}, 3), ElementsAre(12, 13, 14));
  EXPECT_THAT(drafted(drafter, {11}, 1), ElementsAre(12));  // the table has an order that the level has not
  test::expect_bad_input([&] { NgramDrafter other(from_table, kVocabulary + 1); },
                         {"table", "1000 tokens", "1001"});
  from_table.table = folder.write("nothing", "nothing of the kind");
  test::expect_bad_input([&] { NgramDrafter other(from_table, kVocabulary); }, {"nothing"});
}

}  // namespace
}  // namespace ngram_drafter_test
}  // namespace verbatim
