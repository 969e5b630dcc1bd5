#include "drafting/neural_drafter.h"

#include <gtest/gtest.h>

#include <random>

#include "kv/dense.h"
#include "support/drafting.h"

namespace verbatim {
namespace {

using test::ScriptedDrafter;
using test::Tokens;

enum class Cache { kShared, kOwn };

/// A tiny model that drafts, in another reading, for a sequence that it verified itself; or, with a cache of
/// its own, as if for another model.
class NeuralDrafterTest : public testing::TestWithParam<std::tuple<Cache, float>> {
 protected:
  NeuralDrafterTest() {
    for (int i = 0; i < 20; ++i) prompt_.push_back((i * 7 + i * i) % 40);
  }

  bool own() const { return std::get<0>(GetParam()) == Cache::kOwn; }
  DraftCache cache() const { return own() ? DraftCache(decoder_.cache_shape(), 128) : DraftCache(); }
  NeuralDrafter drafter(PassKind kind = Reading::kMxfp4W4A8, bool trees = true) {
    return {evaluator_, kind, cache(), trees};
  }
  Sequence sequence(const Tokens& tokens) { return test::verified(tokens, evaluator_); }
  Sequence sequence() { return sequence(prompt_); }

  Draft propose(Drafter& drafter, Sequence& sequence, const DraftLimits& limits, int64_t room = 100) {
    const Tokens before = sequence.tokens;
    const int64_t length = sequence.cache->length();
    Draft draft;
    drafter.propose(sequence, sampler_, limits, room, draft);
    EXPECT_EQ(sequence.tokens, before);
    EXPECT_EQ(sequence.cache->length(), length);
    for (const DraftNode& node : draft.nodes) EXPECT_LT(node.depth, std::min<int64_t>(room, limits.length));
    return draft;
  }

  /// The guesses after tokens that the drafter evaluated one by one: from where the verified ones end or,
  /// with a cache of its own, from the beginning.
  std::vector<Guess> guesses_after(const Tokens& tokens, size_t breadth, const PassKind& kind) {
    Sequence past =
        own() ? Sequence{prompt_, std::make_unique<DenseCache>(decoder_.cache_shape(), 128)} : sequence();
    const int64_t first = own() ? 0 : static_cast<int64_t>(prompt_.size()) - 1;
    Matrix<const float> logits;
    for (auto p = static_cast<size_t>(first); p < tokens.size(); ++p) {
      logits =
          reference_.evaluate(std::span(tokens).first(p + 1), static_cast<int64_t>(p), 1, kind, *past.cache);
    }
    std::vector<Guess> guesses(breadth);
    guesses.resize(sampler_.best(logits.row_span(0), static_cast<int64_t>(tokens.size()), tokens, guesses));
    return guesses;
  }

  /// What a drafter alone would say, one pass per token.
  Tokens one_by_one(const Tokens& tokens, int32_t length, const PassKind& kind = Reading::kMxfp4W4A8) {
    Tokens all = tokens;
    for (int32_t i = 0; i < length; ++i) all.push_back(guesses_after(all, 1, kind)[0].token);
    return {all.begin() + static_cast<ptrdiff_t>(tokens.size()), all.end()};
  }

  ThreadTeam team_{1};
  Decoder decoder_ = test::tiny_decoder(test::small_vocabulary(40));
  Evaluator evaluator_{decoder_, team_};
  Evaluator reference_{decoder_, team_};
  Sampler sampler_{SamplingOptions{
      .repetition_penalty = 1.1f, .temperature = std::get<1>(GetParam()), .top_k = 30, .seed = 3}};
  Tokens prompt_;
};

INSTANTIATE_TEST_SUITE_P(, NeuralDrafterTest,
                         testing::Combine(testing::Values(Cache::kShared, Cache::kOwn),
                                          testing::Values(0.0f, 0.9f)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) == Cache::kOwn ? "own" : "shared") +
                                  (std::get<1>(info.param) > 0 ? "_sampled" : "_greedy");
                         });

/// Drafters with a cache of their own. A reading of the same model drafts chains with leaves, and the cache
/// that it reads is always up to date.
class NeuralDrafterOfAnotherModel : public NeuralDrafterTest {};
INSTANTIATE_TEST_SUITE_P(, NeuralDrafterOfAnotherModel,
                         testing::Combine(testing::Values(Cache::kOwn), testing::Values(0.0f, 0.9f)));

TEST_P(NeuralDrafterTest, AChainIsWhatOnePassPerTokenSays) {
  for (const PassKind& kind : {PassKind(Reading::kMxfp4W4A8), PassKind(Reading::kMxfp4W4A16)}) {
    NeuralDrafter alone = drafter(kind);
    Sequence verified = sequence();
    const Draft draft = propose(alone, verified, {.length = 9, .nodes = 9});
    EXPECT_EQ(test::tokens_of(draft), one_by_one(prompt_, 9, kind));
    EXPECT_FALSE(draft.unsure);
    EXPECT_EQ(alone.stats.passes, 9);
    EXPECT_EQ(alone.stats.drafted, 9);
    Tokens all = prompt_;
    for (const DraftNode& node : draft.nodes) {
      EXPECT_EQ(node.confidence, guesses_after(all, 1, kind)[0].confidence);
      EXPECT_EQ(node.parent, node.depth - 1);
      all.push_back(node.token);
    }
  }
}

TEST_P(NeuralDrafterTest, NothingIsDraftedBehindTheEnd) {
  const Tokens whole = one_by_one(prompt_, 8);
  const Tokens ends = {whole[3]};
  const auto first = std::find(whole.begin(), whole.end(), ends[0]) - whole.begin();
  sampler_ = Sampler(sampler_.options(), {.ends = ends});
  NeuralDrafter alone = drafter();
  Sequence verified = sequence();
  const Draft draft = propose(alone, verified, {.length = 8, .nodes = 8});
  EXPECT_EQ(test::tokens_of(draft), Tokens(whole.begin(), whole.begin() + first + 1));
  EXPECT_EQ(alone.stats.passes, first + 1);

  NeuralDrafter broad = drafter();
  const Draft tree = propose(broad, verified, {.length = 8, .breadth = 3, .nodes = 24});
  for (const DraftNode& node : tree.nodes) {
    if (node.parent == DraftNode::kRoot) continue;
    EXPECT_NE(tree.nodes[static_cast<size_t>(node.parent)].token, ends[0]);
  }
}

/// Declines all passes after so many.
class DecliningRunner : public SingleRunner {
 public:
  DecliningRunner(const Decoder& decoder, ThreadTeam& team, int passes)
      : SingleRunner(decoder, team), left_(passes) {}
  Matrix<const float> run(std::span<const Row> rows, const PassKind& kind, KvCache& cache,
                          int64_t first_logits_row) override {
    if (left_-- == 0) return {};
    return SingleRunner::run(rows, kind, cache, first_logits_row);
  }

 private:
  int left_;
};

TEST_P(NeuralDrafterTest, ADraftEndsWhereAPassIsDeclined) {
  for (const int passes : {0, 1, 3}) {
    Evaluator declining(std::make_unique<DecliningRunner>(decoder_, team_, passes));
    NeuralDrafter drafter(declining, Reading::kMxfp4W4A8, cache(), true);
    Sequence verified = sequence();
    const Draft draft = propose(drafter, verified, {.length = 9, .nodes = 9});
    EXPECT_EQ(test::tokens_of(draft), one_by_one(prompt_, passes));
    EXPECT_EQ(drafter.stats.passes, passes);
    EXPECT_EQ(drafter.pass_rows().size(), static_cast<size_t>(passes));
    // What it knows by then is no more than what was evaluated.
    const Draft next = propose(drafter, verified, {.length = 4, .nodes = 4});
    EXPECT_EQ(test::tokens_of(next), one_by_one(prompt_, 4));
  }
}

TEST_P(NeuralDrafterTest, ATreeGrowsNoFurtherThanWhereAPassIsDeclined) {
  Evaluator declining(std::make_unique<DecliningRunner>(decoder_, team_, 3));
  NeuralDrafter drafter(declining, Reading::kMxfp4W4A8, cache(), true);
  Sequence verified = sequence();
  const Draft draft = propose(drafter, verified, {.length = 9, .breadth = 2, .nodes = 20});
  EXPECT_GT(draft.size(), 2);
  EXPECT_LE(draft.size(), 6);
}

TEST_P(NeuralDrafterTest, AnEarlyExitRunsTheFirstLayersAlone) {
  PassKind kind(Reading::kFull);
  kind.layers = 1;
  NeuralDrafter early = drafter(kind);
  Sequence verified = sequence();
  const Draft draft = propose(early, verified, {.length = 6, .nodes = 6});
  EXPECT_EQ(test::tokens_of(draft), one_by_one(prompt_, 6, kind));
  EXPECT_NE(test::tokens_of(draft), one_by_one(prompt_, 6, Reading::kFull));
}

TEST_P(NeuralDrafterTest, AHeadOfFewerTokensDraftsThoseAlone) {
  NeuralDrafter few = drafter();
  few.own_head(std::make_unique<LinearWeight>(first_columns(decoder_.weights().head, 9)));
  PassKind kind(Reading::kMxfp4W4A8);
  const LinearWeight head = first_columns(decoder_.weights().head, 9);
  kind.head = &head;
  Sequence verified = sequence();
  const Draft draft = propose(few, verified, {.length = 6, .breadth = 3, .nodes = 20});
  EXPECT_GT(draft.size(), 6);
  for (const DraftNode& node : draft.nodes) EXPECT_LT(node.token, 9);
  const Draft chain = propose(few, verified, {.length = 6, .nodes = 6});
  EXPECT_EQ(test::tokens_of(chain), one_by_one(prompt_, 6, kind));
}

// Inner drafters that are right, wrong from some depth on, or right in a branch only: none may show.
TEST_P(NeuralDrafterTest, AnInnerDrafterChangesThePassesAlone) {
  const Tokens truth = one_by_one(prompt_, 40);
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    const DraftLimits limits{.length = 1 + static_cast<int32_t>(random() % 12),
                             .threshold = round % 3 == 0 ? 0.05f : 0.0f,
                             .drop_unsure = round % 6 == 0,
                             .breadth = round % 4 == 1 ? 3 : 1,
                             .nodes = 24};
    NeuralDrafter alone = drafter(Reading::kMxfp4W4A8, false);
    Sequence plain = sequence();
    const int64_t room = 1 + static_cast<int64_t>(random() % 14);
    const Draft expected = propose(alone, plain, limits, room);

    ScriptedDrafter inner([&](const Sequence& so_far, int64_t left, Draft& draft) {
      const size_t at = so_far.tokens.size() - prompt_.size();
      int32_t parent = DraftNode::kRoot;
      const auto deep = static_cast<int64_t>(random() % 6);
      for (int64_t i = 0; i < std::min(left, deep) && at + static_cast<size_t>(i) < truth.size(); ++i) {
        const int32_t right = truth[at + static_cast<size_t>(i)];
        const int32_t wrong = (right + 1) % 40;
        if (random() % 4 == 0) {
          // Right in a branch: the trunk is wrong and goes on.
          const int32_t trunk = draft.add(wrong, parent, 0.5f);
          if (i + 1 < left) draft.add(3, trunk, 0.5f);
          parent = draft.add(right, parent, 0.3f, 1);
        } else {
          parent = draft.add(random() % 5 == 0 ? wrong : right, parent, 0.9f);
        }
      }
    });
    NeuralDrafter with_inner = drafter(Reading::kMxfp4W4A8, round % 2 == 0);
    with_inner.set_inner(&inner, {});
    Sequence verified = sequence();
    const Draft draft = propose(with_inner, verified, limits, room);
    test::expect_same(draft, expected);
    EXPECT_LE(with_inner.stats.passes, alone.stats.passes);
    EXPECT_LE(inner.stats.accepted, inner.stats.drafted);
    // Every pass adds a token to those that it keeps of the inner draft, but for one dropped for doubt.
    int64_t chain = 0;
    for (const DraftNode& node : draft.nodes) chain += node.rank == 0 ? 1 : 0;
    EXPECT_GE(with_inner.stats.passes + inner.stats.accepted, chain);
    EXPECT_LE(with_inner.stats.passes + inner.stats.accepted, chain + 1);
    if (HasFailure()) return;
  }
}

// An inner drafter in another reading writes into the same cache; what the outer one has verified must stay.
TEST_P(NeuralDrafterTest, AnInnerReadingOfTheSameModelLeavesTheOuterKeysAndValues) {
  for (const int32_t breadth : {1, 3}) {
    NeuralDrafter alone = drafter(Reading::kMxfp4W4A8, false);
    Sequence plain = sequence();
    const DraftLimits limits{.length = 16, .breadth = breadth, .nodes = 30};
    const Draft expected = propose(alone, plain, limits);
    PassKind early(Reading::kFull);
    early.layers = 1;
    for (const PassKind& kind : {PassKind(Reading::kMxfp4W4A16), early}) {
      NeuralDrafter inner = drafter(kind, false);
      NeuralDrafter outer = drafter(Reading::kMxfp4W4A8, false);
      outer.set_inner(&inner, {.length = 3, .breadth = 2, .nodes = 6});
      Sequence verified = sequence();
      for (int again = 0; again < 3; ++again) {
        const Draft draft = propose(outer, verified, limits);
        test::expect_same(draft, expected);
      }
      EXPECT_GT(inner.stats.drafted, 0);
    }
  }
}

TEST_P(NeuralDrafterTest, ARightInnerDrafterSavesPasses) {
  const Tokens truth = one_by_one(prompt_, 40);
  ScriptedDrafter inner([&](const Sequence& so_far, int64_t left, Draft& draft) {
    int32_t parent = DraftNode::kRoot;
    for (int64_t i = 0; i < std::min<int64_t>(left, 3); ++i) {
      parent = draft.add(truth[so_far.tokens.size() - prompt_.size() + static_cast<size_t>(i)], parent, 0.9f);
    }
  });
  NeuralDrafter outer = drafter();
  Calibration worth;
  outer.set_inner(&inner, {}, &worth);
  Sequence verified = sequence();
  EXPECT_EQ(propose(outer, verified, {.length = 12, .nodes = 12}).size(), 12);
  EXPECT_EQ(outer.stats.passes, 3);
  EXPECT_EQ(inner.stats.accepted, 9);
  EXPECT_GT(worth.mean(), Calibration().mean());
}

TEST_P(NeuralDrafterTest, StopsWhereItIsUnsure) {
  Sequence verified = sequence();
  NeuralDrafter any = drafter();
  const Draft whole = propose(any, verified, {.length = 10, .nodes = 10});
  float least = 1.0f;
  for (const DraftNode& node : whole.nodes) least = std::min(least, node.confidence);
  size_t first = 0;
  while (whole.nodes[first].confidence > least) ++first;
  const float threshold = std::nextafter(least, 1.0f);
  for (const bool drop : {false, true}) {
    NeuralDrafter unsure = drafter();
    const Draft draft =
        propose(unsure, verified, {.length = 10, .threshold = threshold, .drop_unsure = drop, .nodes = 10});
    EXPECT_EQ(draft.nodes.size(), first + (drop ? 0 : 1));
    EXPECT_TRUE(draft.unsure);
  }
  NeuralDrafter sure = drafter();
  EXPECT_FALSE(propose(sure, verified, {.length = 10, .threshold = least, .nodes = 10}).unsure);
  // By the probability of the path.
  DraftLimits limits{.length = 10, .nodes = 10};
  limits.path_threshold = std::nextafter(whole.nodes[2].path, 1.0f);
  NeuralDrafter path = drafter();
  size_t above = 0;
  while (whole.nodes[above].path >= limits.path_threshold) ++above;
  EXPECT_EQ(propose(path, verified, limits).nodes.size(), above + 1);
}

TEST_P(NeuralDrafterTest, StaysWithinTheRoom) {
  for (const bool trees : {false, true}) {
    for (const int64_t room : {0, 1, 2, 5}) {
      NeuralDrafter any = drafter(Reading::kMxfp4W4A8, trees);
      Sequence verified = sequence();
      const Draft draft = propose(any, verified, {.length = 8, .breadth = 3, .nodes = 40}, room);
      EXPECT_EQ(draft.nodes.empty(), room == 0);
    }
  }
}

// Leaves beside a chain: the best of what the passes of the chain know already.
TEST_P(NeuralDrafterTest, LeavesAreTheLikeliestSiblingsOfTheChain) {
  NeuralDrafter with_leaves = drafter(Reading::kMxfp4W4A8, false);
  Sequence verified = sequence();
  const DraftLimits limits{.length = 5, .breadth = 4, .nodes = 12};
  const Draft draft = propose(with_leaves, verified, limits);
  EXPECT_EQ(with_leaves.stats.passes, 5);
  NeuralDrafter chain = drafter(Reading::kMxfp4W4A8, false);
  Draft expected = propose(chain, verified, {.length = 5, .nodes = 5});
  std::vector<DraftNode> leaves;
  for (int32_t parent = -1; parent < 4; ++parent) {
    Tokens tokens = prompt_;
    for (const int32_t token : test::path_to(expected, parent)) tokens.push_back(token);
    const std::vector<Guess> guesses = guesses_after(tokens, 4, Reading::kMxfp4W4A8);
    for (size_t i = 1; i < guesses.size(); ++i) {
      const auto rank = static_cast<int32_t>(i);
      leaves.push_back({guesses[i].token, parent, parent + 1, rank, guesses[i].confidence,
                        guesses[i].confidence, expected.path_of(parent, rank, guesses[i].confidence)});
    }
  }
  std::sort(leaves.begin(), leaves.end(), [](const auto& a, const auto& b) { return a.path > b.path; });
  for (size_t i = 0; expected.size() < 12 && i < leaves.size(); ++i) expected.nodes.push_back(leaves[i]);
  test::expect_same(draft, expected);

  // A bound on their probability, which the chain itself is free of.
  DraftLimits likely = limits;
  likely.leaf_threshold = leaves[2].path;
  NeuralDrafter bounded = drafter(Reading::kMxfp4W4A8, false);
  expected.nodes.resize(5 + 3);
  test::expect_same(propose(bounded, verified, likely), expected);
}

/// The likeliest nodes, one after the other, each evaluated on its own.
Draft likeliest_nodes(const DraftLimits& limits, int64_t room,
                      const std::function<std::vector<Guess>(const Tokens& path)>& guesses_after) {
  Draft draft;
  std::vector<DraftNode> open;
  const auto expand = [&](int32_t node) {
    const std::vector<Guess> guesses = guesses_after(test::path_to(draft, node));
    for (size_t i = 0; i < guesses.size(); ++i) {
      const auto rank = static_cast<int32_t>(i);
      open.push_back({guesses[i].token, node, 0, rank, guesses[i].confidence, guesses[i].confidence,
                      draft.path_of(node, rank, guesses[i].confidence)});
    }
  };
  expand(DraftNode::kRoot);
  while (!open.empty() && draft.size() < limits.nodes) {
    const auto best = std::max_element(open.begin(), open.end(),
                                       [](const auto& a, const auto& b) { return a.path < b.path; });
    const DraftNode chosen = *best;
    open.erase(best);
    const int32_t node = draft.add(chosen.token, chosen.parent, chosen.confidence, chosen.rank);
    if (chosen.confidence < limits.threshold) {
      draft.unsure = true;
    } else if (draft.nodes.back().depth + 1 < std::min<int64_t>(room, limits.length)) {
      expand(node);
    }
  }
  return draft;
}

TEST_P(NeuralDrafterOfAnotherModel, ATreeHasTheLikeliestNodes) {
  for (const DraftLimits& limits : {DraftLimits{.length = 5, .breadth = 3, .nodes = 16},
                                    DraftLimits{.length = 3, .breadth = 8, .nodes = 40},
                                    DraftLimits{.length = 8, .threshold = 0.1f, .breadth = 2, .nodes = 20}}) {
    const Draft expected = likeliest_nodes(limits, 4, [&](const Tokens& path) {
      Tokens tokens = prompt_;
      tokens.insert(tokens.end(), path.begin(), path.end());
      return guesses_after(tokens, static_cast<size_t>(limits.breadth), Reading::kMxfp4W4A8);
    });
    NeuralDrafter tree = drafter();
    Sequence verified = sequence();
    test::expect_same(propose(tree, verified, limits, 4), expected);
    // Once more from the cache, which held many paths since.
    test::expect_same(propose(tree, verified, limits, 4), expected);
  }
}

// A drafter that lives through rejections, cuts and other texts drafts as a new one does.
TEST_P(NeuralDrafterTest, ItsPastIsAlwaysThatOfTheSequence) {
  std::mt19937 random(9);
  NeuralDrafter old_chain = drafter(Reading::kMxfp4W4A8, false);
  NeuralDrafter old_tree = drafter();
  Tokens tokens = prompt_;
  for (int round = 0; round < 60; ++round) {
    NeuralDrafter new_chain = drafter(Reading::kMxfp4W4A8, false);
    NeuralDrafter new_tree = drafter();
    Sequence verified = sequence(tokens);
    const DraftLimits chain{.length = 1 + static_cast<int32_t>(random() % 6), .nodes = 6};
    const DraftLimits tree{.length = 4, .breadth = 3, .nodes = 10};
    const Draft draft = propose(old_chain, verified, chain);
    test::expect_same(draft, propose(new_chain, verified, chain));
    if (random() % 2 == 0) {
      test::expect_same(propose(old_tree, verified, tree), propose(new_tree, verified, tree));
    }
    if (HasFailure()) return;
    old_chain.observe(verified);
    old_tree.observe(verified);
    switch (random() % 6) {
      case 0:
        tokens.resize(1 + random() % tokens.size());
        break;
      case 1:
        tokens[random() % tokens.size()] = static_cast<int32_t>(random() % 40);
        break;
      default:
        const size_t kept = random() % (draft.nodes.size() + 1);
        for (size_t i = 0; i < kept; ++i) tokens.push_back(draft.nodes[i].token);
        tokens.push_back(static_cast<int32_t>(random() % 40));
    }
    if (tokens.size() > 100) tokens.resize(10);
  }
}

TEST_P(NeuralDrafterOfAnotherModel, ALongPastIsCaughtUpWith) {
  Tokens tokens;
  for (int i = 0; i < 1100; ++i) tokens.push_back((i * 11 + i / 7) % 40);
  Sequence past{tokens, std::make_unique<DenseCache>(decoder_.cache_shape(), 1200)};
  NeuralDrafter drafter(evaluator_, Reading::kMxfp4W4A8, DraftCache(decoder_.cache_shape(), 1200), true);
  Draft draft;
  drafter.propose(past, sampler_, {.length = 3, .nodes = 3}, 10, draft);
  ASSERT_EQ(draft.size(), 3);
  for (size_t i = 0; i < 3; ++i) {
    DenseCache cache(decoder_.cache_shape(), 1200);
    const Matrix<const float> logits = reference_.evaluate(tokens, 0, 1, Reading::kMxfp4W4A8, cache);
    std::array<Guess, 1> guess;
    ASSERT_EQ(sampler_.best(logits.row_span(0), static_cast<int64_t>(tokens.size()), tokens, guess), 1U);
    EXPECT_EQ(draft.nodes[i].token, guess[0].token);
    EXPECT_EQ(draft.nodes[i].confidence, guess[0].confidence);
    tokens.push_back(guess[0].token);
  }
}

// The rejection rule wants the distribution that every token was drawn from.
TEST_P(NeuralDrafterTest, GivesTheDistributionOfEveryNode) {
  NeuralDrafter any = drafter();
  const Tokens truth = one_by_one(prompt_, 8);
  ScriptedDrafter inner([&](const Sequence& so_far, int64_t left, Draft& draft) {
    const size_t at = so_far.tokens.size() - prompt_.size();
    int32_t parent = DraftNode::kRoot;
    for (int64_t i = 0; i < std::min<int64_t>(left, 3); ++i) {
      parent = draft.add(i < 2 ? truth[at + static_cast<size_t>(i)] : 0, parent, 0.9f);
    }
  });
  any.set_inner(&inner, {});
  Sequence verified = sequence();
  Draft draft;
  draft.want_distributions = true;
  any.propose(verified, sampler_, {.length = 6, .nodes = 6}, 6, draft);
  ASSERT_EQ(draft.size(), 6);
  ASSERT_EQ(draft.distributions.size(), 6U);
  EXPECT_EQ(test::tokens_of(draft), Tokens(truth.begin(), truth.begin() + 6));
  for (size_t i = 0; i < 6; ++i) {
    ASSERT_EQ(draft.distributions[i].size(), 40U);
    float sum = 0.0f;
    for (const float probability : draft.distributions[i]) sum += probability;
    EXPECT_NEAR(sum, 1.0f, 1e-5f);
    EXPECT_GT(draft.distributions[i][static_cast<size_t>(draft.nodes[i].token)], 0.0f);
    if (sampler_.options().temperature == 0.0f) {
      EXPECT_EQ(draft.distributions[i][static_cast<size_t>(draft.nodes[i].token)], 1.0f);
    }
  }
}

}  // namespace
}  // namespace verbatim
