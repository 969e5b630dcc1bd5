#include "drafting/evaluator.h"

#include <gtest/gtest.h>

#include <random>

#include "kv/dense.h"
#include "support/drafting.h"

namespace verbatim {
namespace {

using test::Tokens;

constexpr int32_t kVocabulary = 50;

/// A tree whose nodes come in any order that has parents first.
Draft random_tree(std::mt19937& random, int32_t nodes) {
  Draft draft;
  while (draft.size() < nodes) {
    const auto parent = static_cast<int32_t>(random() % static_cast<uint32_t>(draft.size() + 1)) - 1;
    const auto token = static_cast<int32_t>(random() % kVocabulary);
    if (draft.child(parent, token) == DraftNode::kRoot) draft.add(token, parent, 0.5f);
  }
  return draft;
}

Tokens joined(const Tokens& first, const Tokens& second) {
  Tokens both = first;
  both.insert(both.end(), second.begin(), second.end());
  return both;
}

std::vector<float> last_logits(const Decoder& decoder, const Tokens& tokens, ThreadTeam& team) {
  const std::vector<float> all = test::all_logits(decoder, tokens, 512, Reading::kFull, team);
  return {all.end() - kVocabulary, all.end()};
}

class EvaluatorTest : public testing::Test {
 protected:
  EvaluatorTest() {
    for (int i = 0; i < 125; ++i) prompt_.push_back((i * 13 + i / 3) % kVocabulary);
  }
  std::vector<float> row(Matrix<const float> logits, int64_t r) const {
    return {logits.row(r), logits.row(r) + logits.columns};
  }

  ThreadTeam team_{2};
  Decoder decoder_ = test::tiny_decoder(test::small_vocabulary(kVocabulary));
  Evaluator evaluator_{decoder_, team_};
  Tokens prompt_;  // ends just before the border of a chunk of attention
};

TEST_F(EvaluatorTest, GivesEveryNodeTheLogitsOfItsPath) {
  std::mt19937 random(1);
  for (int round = 0; round < 12; ++round) {
    const Draft draft = random_tree(random, 1 + round * 2);
    DenseCache cache(decoder_.cache_shape(), 256);
    // With the last token alone, and with several that the cache does not hold yet.
    const auto first = static_cast<int64_t>(prompt_.size()) - 1 - round % 3 * 5;
    evaluator_.evaluate(std::span(prompt_).first(static_cast<size_t>(first)), 0, 0, Reading::kFull, cache);
    const Matrix<const float> logits = evaluator_.evaluate(prompt_, first, draft, Reading::kFull, cache);
    EXPECT_EQ(logits.rows, draft.size() + 1);
    EXPECT_EQ(evaluator_.row_of(DraftNode::kRoot), 0);
    EXPECT_EQ(row(logits, 0), last_logits(decoder_, prompt_, team_));
    std::vector<bool> seen(static_cast<size_t>(logits.rows));
    seen[0] = true;
    for (int32_t node = 0; node < draft.size(); ++node) {
      const int64_t r = evaluator_.row_of(node);
      EXPECT_FALSE(seen[static_cast<size_t>(r)]) << "two nodes in one row";
      seen[static_cast<size_t>(r)] = true;
      ASSERT_EQ(row(logits, r), last_logits(decoder_, joined(prompt_, test::path_to(draft, node)), team_))
          << "round " << round << ", node " << node;
    }
  }
}

TEST_F(EvaluatorTest, KeepsThePathThatIsChosen) {
  std::mt19937 random(2);
  for (int round = 0; round < 30; ++round) {
    const Draft draft = random_tree(random, 14);
    DenseCache cache(decoder_.cache_shape(), 256);
    const auto first = static_cast<int64_t>(prompt_.size()) - 1 - round % 2 * 7;
    evaluator_.evaluate(std::span(prompt_).first(static_cast<size_t>(first)), 0, 0, Reading::kFull, cache);
    evaluator_.evaluate(prompt_, first, draft, Reading::kFull, cache);
    const auto node = static_cast<int32_t>(random() % 15) - 1;
    evaluator_.keep(node, cache);
    Tokens tokens = joined(prompt_, test::path_to(draft, node));
    const auto known = static_cast<int64_t>(tokens.size());
    tokens.push_back(3);
    const Matrix<const float> logits = evaluator_.evaluate(tokens, known, 1, Reading::kFull, cache);
    ASSERT_EQ(row(logits, 0), last_logits(decoder_, tokens, team_)) << "round " << round << ", node " << node;
  }
}

/// Takes a number of the nodes that are offered, and runs the pass without the others.
class ChoosyRunner : public SingleRunner {
 public:
  using SingleRunner::SingleRunner;
  Matrix<const float> run(std::span<const Row> rows, const PassKind& kind, KvCache& cache,
                          int64_t first_logits_row) override {
    if (offer_.keep) {
      offered = std::ssize(offer_.paths);
      offer_.keep(std::min(takes + 1, offered));  // a pass may change its mind
      rows = offer_.keep(std::min(takes, offered));
    }
    offer_ = {};
    return SingleRunner::run(rows, kind, cache, first_logits_row);
  }
  void offer(const Offer& offer) override { offer_ = offer; }

  int64_t takes = 0;
  int64_t offered = 0;

 private:
  Offer offer_;
};

TEST_F(EvaluatorTest, NodesThatAreNotWorthTheirRowsLeaveTheLogitsOfOthersAsTheyWere) {
  auto* const runner = new ChoosyRunner(decoder_, team_);
  Evaluator evaluator{std::unique_ptr<PassRunner>(runner)};
  std::mt19937 random(3);
  for (int round = 0; round < 24; ++round) {
    Draft draft = random_tree(random, 12);
    draft.order_by_path();
    const Draft whole = draft;
    DenseCache cache(decoder_.cache_shape(), 256);
    const auto first = static_cast<int64_t>(prompt_.size()) - 1 - round % 2 * 7;
    evaluator.evaluate(std::span(prompt_).first(static_cast<size_t>(first)), 0, 0, Reading::kFull, cache);
    const int64_t certain = round % 3;
    runner->takes = round % 11;
    Matrix<const float> logits =
        evaluator.evaluate_worthwhile(prompt_, first, certain, draft, Reading::kFull, cache);
    EXPECT_EQ(runner->offered, 12 - certain);
    ASSERT_EQ(draft.size(), std::min<int64_t>(certain + runner->takes, 12));
    EXPECT_EQ(logits.rows, draft.size() + 1);
    EXPECT_EQ(row(logits, 0), last_logits(decoder_, prompt_, team_));
    for (int32_t node = 0; node < draft.size(); ++node) {
      EXPECT_EQ(draft.nodes[static_cast<size_t>(node)].token, whole.nodes[static_cast<size_t>(node)].token);
      ASSERT_EQ(row(logits, evaluator.row_of(node)),
                last_logits(decoder_, joined(prompt_, test::path_to(draft, node)), team_))
          << "round " << round << ", node " << node;
    }
    // What is kept of the cache is right as well.
    const auto last = static_cast<int32_t>(draft.size()) - 1;
    evaluator.keep(last, cache);
    Tokens tokens = joined(prompt_, test::path_to(draft, last));
    const auto known = static_cast<int64_t>(tokens.size());
    tokens.push_back(3);
    logits = evaluator.evaluate(tokens, known, 1, Reading::kFull, cache);
    ASSERT_EQ(row(logits, 0), last_logits(decoder_, tokens, team_)) << "round " << round;
  }
}

TEST_F(EvaluatorTest, ADraftMayBeEmpty) {
  DenseCache cache(decoder_.cache_shape(), 256);
  const Matrix<const float> logits = evaluator_.evaluate(prompt_, 0, Draft(), Reading::kFull, cache);
  ASSERT_EQ(logits.rows, 1);
  EXPECT_EQ(row(logits, evaluator_.row_of(DraftNode::kRoot)), last_logits(decoder_, prompt_, team_));
  evaluator_.keep(DraftNode::kRoot, cache);
}

}  // namespace
}  // namespace verbatim
