#include "speculation/acceptance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "kv/dense.h"
#include "support/drafting.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

using test::Tokens;

constexpr int32_t kVocabulary = 8;
constexpr int32_t kRoot = DraftNode::kRoot;

/// Verification with logits made by hand: a distribution for each node and for the root.
class AcceptanceTest : public testing::Test {
 protected:
  /// The probabilities after a node, most of them 0.
  using After = std::map<int32_t, std::map<int32_t, float>>;

  Verdict verify(const Draft& draft, const After& after, Tokens& tokens) {
    DenseCache cache(decoder_.cache_shape(), 64);
    const Matrix<const float> rows = evaluator_.evaluate(tokens, 0, draft, Reading::kFull, cache);
    std::vector<float> logits(static_cast<size_t>(rows.rows * kVocabulary), -1e9f);
    for (const auto& [node, probabilities] : after) {
      for (const auto& [token, probability] : probabilities) {
        logits[static_cast<size_t>(evaluator_.row_of(node) * kVocabulary + token)] = std::log(probability);
      }
    }
    const Matrix<const float> matrix(logits.data(), rows.rows, kVocabulary, kVocabulary);
    return accept(recipe_, draft, matrix, evaluator_, sampler_, tokens);
  }

  void sample(float temperature, uint64_t seed = 0) {
    sampler_ = Sampler({.temperature = temperature, .seed = seed});
  }

  ThreadTeam team_{1};
  Decoder decoder_ = test::tiny_decoder(test::small_vocabulary(kVocabulary));
  Evaluator evaluator_{decoder_, team_};
  Sampler sampler_{SamplingOptions{}};
  Recipe recipe_;
};

TEST_F(AcceptanceTest, ExactGoesAlongTheBranchThatTheSamplerTakes) {
  Draft draft;
  const int32_t a = draft.add(1, kRoot, 0.6f);
  const int32_t b = draft.add(2, a, 0.6f);
  const int32_t c = draft.add(3, kRoot, 0.3f, 1);
  const int32_t d = draft.add(4, c, 0.5f);
  const int32_t e = draft.add(5, c, 0.5f, 1);
  const After after = {{kRoot, {{3, 0.6f}, {1, 0.4f}}},
                       {c, {{5, 0.9f}, {4, 0.1f}}},
                       {e, {{6, 1.0f}}},
                       {a, {{2, 1.0f}}},
                       {b, {{2, 1.0f}}},
                       {d, {{2, 1.0f}}}};
  Tokens tokens = {7, 7};
  const Verdict verdict = verify(draft, after, tokens);
  EXPECT_EQ(tokens, (Tokens{7, 7, 3, 5, 6}));
  EXPECT_EQ(verdict.last, e);
  EXPECT_EQ(verdict.kept, 2);
  EXPECT_FALSE(verdict.rejected) << "nothing was offered after the last";
}

TEST_F(AcceptanceTest, ExactStopsAtTheFirstDraftThatIsNotTheChoice) {
  Draft draft;
  const int32_t a = draft.add(1, kRoot, 0.6f);
  const int32_t b = draft.add(2, a, 0.6f);
  Tokens tokens = {7};
  Verdict verdict = verify(draft, {{kRoot, {{1, 1.0f}}}, {a, {{4, 1.0f}}}, {b, {{5, 1.0f}}}}, tokens);
  EXPECT_EQ(tokens, (Tokens{7, 1, 4}));
  EXPECT_EQ(verdict.last, a);
  EXPECT_EQ(verdict.kept, 1);
  EXPECT_TRUE(verdict.rejected);

  tokens = {7};
  verdict = verify(draft, {{kRoot, {{3, 1.0f}}}, {a, {{4, 1.0f}}}, {b, {{5, 1.0f}}}}, tokens);
  EXPECT_EQ(tokens, (Tokens{7, 3}));
  EXPECT_EQ(verdict.last, kRoot);
  EXPECT_EQ(verdict.kept, 0);
  EXPECT_TRUE(verdict.rejected);

  tokens = {7};
  verdict = verify(Draft(), {{kRoot, {{3, 1.0f}}}}, tokens);
  EXPECT_EQ(tokens, (Tokens{7, 3}));
  EXPECT_FALSE(verdict.rejected);
}

// The sampler sees the drafts that were kept in its history.
TEST_F(AcceptanceTest, ExactPenalisesWhatItKept) {
  Draft draft;
  const int32_t a = draft.add(1, kRoot, 0.6f);
  const int32_t b = draft.add(1, a, 0.6f);
  sampler_ = Sampler({.repetition_penalty = 3.0f});
  Tokens tokens = {7};
  // 1 is likelier than 2, but once it is in the history log 0.55 · 3 is less than log 0.45.
  const std::map<int32_t, float> either = {{1, 0.55f}, {2, 0.45f}};
  verify(draft, {{kRoot, either}, {a, either}, {b, {{5, 1.0f}}}}, tokens);
  EXPECT_EQ(tokens, (Tokens{7, 1, 2}));
}

TEST_F(AcceptanceTest, BildKeepsWhatTheModelFindsLikelyEnough) {
  recipe_.acceptance = Recipe::Acceptance::kBild;
  recipe_.rollback = 1.0f;  // 0.3679 and more
  Draft draft;
  const int32_t a = draft.add(1, kRoot, 0.9f);
  const int32_t b = draft.add(2, a, 0.9f);
  const int32_t c = draft.add(3, b, 0.9f);
  const After after = {
      {kRoot, {{1, 0.37f}, {6, 0.63f}}}, {a, {{2, 0.36f}, {6, 0.64f}}}, {b, {{3, 1.0f}}}, {c, {{5, 1.0f}}}};
  Tokens tokens = {7};
  Verdict verdict = verify(draft, after, tokens);
  EXPECT_EQ(tokens, (Tokens{7, 1, 6}));
  EXPECT_EQ(verdict.last, a);
  EXPECT_EQ(verdict.kept, 1);
  EXPECT_TRUE(verdict.rejected);

  recipe_.rollback = 1.1f;  // 0.3329 and more
  tokens = {7};
  verdict = verify(draft, after, tokens);
  EXPECT_EQ(tokens, (Tokens{7, 1, 2, 3, 5}));
  EXPECT_EQ(verdict.last, c);
  EXPECT_EQ(verdict.kept, 3);
  EXPECT_FALSE(verdict.rejected);
}

TEST_F(AcceptanceTest, BildWithoutToleranceKeepsCertaintiesAndTheModelsOwnChoice) {
  recipe_.acceptance = Recipe::Acceptance::kBild;
  recipe_.rollback = 0.0f;
  Draft draft;
  const int32_t a = draft.add(1, kRoot, 0.9f);
  const int32_t b = draft.add(2, a, 0.9f);
  const int32_t c = draft.add(3, b, 0.9f);
  Tokens tokens = {7};
  const Verdict verdict = verify(
      draft,
      {{kRoot, {{1, 1.0f}}}, {a, {{2, 0.6f}, {6, 0.4f}}}, {b, {{3, 0.4f}, {6, 0.6f}}}, {c, {{5, 1.0f}}}},
      tokens);
  EXPECT_EQ(tokens, (Tokens{7, 1, 2, 6}));
  EXPECT_EQ(verdict.kept, 2);
  EXPECT_TRUE(verdict.rejected);
}

// Tolerance is measured on the model's whole distribution: what is outside the nucleus may be kept. What goes
// in the place of a draft is drawn from the nucleus.
TEST_F(AcceptanceTest, BildTakesFromTheNucleusWhatItWritesItself) {
  recipe_.acceptance = Recipe::Acceptance::kBild;
  Draft draft;
  draft.add(1, kRoot, 0.9f);
  const After after = {{kRoot, {{6, 0.55f}, {5, 0.38f}, {1, 0.06f}, {2, 0.01f}}}, {0, {{3, 1.0f}}}};
  constexpr int kRounds = 4000;
  std::map<int32_t, int> counts;
  for (int round = 0; round < kRounds; ++round) {
    sampler_ = Sampler({.temperature = 1.0f, .top_p = 0.9f, .seed = static_cast<uint64_t>(round)});
    recipe_.rollback = 2.0f;  // 0.1353 and more
    Tokens tokens = {7};
    EXPECT_TRUE(verify(draft, after, tokens).rejected);
    ++counts[tokens[1]];

    recipe_.rollback = 3.0f;  // 0.0498 and more
    tokens = {7};
    EXPECT_FALSE(verify(draft, after, tokens).rejected);
    EXPECT_EQ(tokens, (Tokens{7, 1, 3}));
  }
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_NEAR(counts[6] / double{kRounds}, 0.55 / 0.93, 0.03);
  EXPECT_NEAR(counts[5] / double{kRounds}, 0.38 / 0.93, 0.03);
}

TEST_F(AcceptanceTest, RejectionAtTemperatureZeroIsExact) {
  recipe_.acceptance = Recipe::Acceptance::kRejection;
  Draft draft;
  const int32_t a = draft.add(1, kRoot, 0.9f);
  const int32_t b = draft.add(2, a, 0.9f);
  const After after = {{kRoot, {{1, 0.6f}, {2, 0.4f}}}, {a, {{2, 0.4f}, {6, 0.6f}}}, {b, {{3, 1.0f}}}};
  Tokens tokens = {7};
  const Verdict verdict = verify(draft, after, tokens);
  EXPECT_EQ(tokens, (Tokens{7, 1, 6}));
  EXPECT_EQ(verdict.last, a);
  EXPECT_TRUE(verdict.rejected);
}

// Two drafted tokens after each other, from distributions that are far from the model's: what comes out is
// the model's, and is kept as often as the two overlap.
TEST_F(AcceptanceTest, RejectionKeepsAsMuchAsTheDistributionsOverlap) {
  recipe_.acceptance = Recipe::Acceptance::kRejection;
  constexpr int kRounds = 20000;
  // The draft says 1 with 0.8 and 2 with 0.2, the model 0.3 and 0.5, and 4 with 0.2.
  std::vector<float> drafts(kVocabulary, 0.0f);
  drafts[1] = 0.8f;
  drafts[2] = 0.2f;
  std::map<int32_t, int> counts;
  int kept = 0;
  for (int round = 0; round < kRounds; ++round) {
    sample(1.0f, static_cast<uint64_t>(round));
    Draft draft;
    draft.want_distributions = true;
    const std::vector<float> draft_logits = [&] {
      std::vector<float> logits(kVocabulary, -1e9f);
      logits[1] = std::log(0.8f);
      logits[2] = std::log(0.2f);
      return logits;
    }();
    Tokens tokens = {7};
    draft.add(sampler_.sample(draft_logits, 1, tokens), kRoot, 0.8f);
    draft.distributions.push_back(drafts);
    const Verdict verdict =
        verify(draft, {{kRoot, {{1, 0.3f}, {2, 0.5f}, {4, 0.2f}}}, {0, {{5, 1.0f}}}}, tokens);
    ++counts[tokens[1]];
    kept += static_cast<int>(verdict.kept);
  }
  EXPECT_NEAR(kept / double{kRounds}, 0.3 + 0.2, 0.012);
  EXPECT_NEAR(counts[1] / double{kRounds}, 0.3, 0.012);
  EXPECT_NEAR(counts[2] / double{kRounds}, 0.5, 0.012);
  EXPECT_NEAR(counts[4] / double{kRounds}, 0.2, 0.012);
}

// The reply may end with the kept token, and then nobody asks what follows it.
TEST_F(AcceptanceTest, AStepEndsWithTheTokenThatNothingCanFollow) {
  Draft draft;
  const int32_t a = draft.add(1, kRoot, 0.6f);
  const int32_t b = draft.add(2, a, 0.6f);
  draft.add(3, b, 0.6f);
  const auto nothing_after_2 = [](std::span<const int32_t> generated, std::span<uint8_t> allowed) {
    if (generated.back() == 2) std::fill(allowed.begin(), allowed.end(), uint8_t{0});
  };
  const After after = {{kRoot, {{1, 1.0f}}}, {a, {{2, 1.0f}}}, {b, {{3, 1.0f}}}};
  for (const auto rule :
       {Recipe::Acceptance::kExact, Recipe::Acceptance::kRejection, Recipe::Acceptance::kBild}) {
    recipe_.acceptance = rule;
    recipe_.rollback = 1.0f;
    sampler_ = Sampler({}, {.filter = nothing_after_2, .vocabulary = kVocabulary});
    Tokens tokens = {7};
    const Verdict verdict = verify(draft, after, tokens);
    EXPECT_EQ(tokens, (Tokens{7, 1, 2}));
    EXPECT_EQ(verdict.last, a) << "the last token counts as the model's own";
    EXPECT_EQ(verdict.kept, 1);
    EXPECT_FALSE(verdict.rejected);
    EXPECT_THROW(verify(Draft(), {{kRoot, {{3, 1.0f}}}}, tokens), Error) << "the next step needs it";
    EXPECT_EQ(tokens, (Tokens{7, 1, 2}));
  }
}

}  // namespace
}  // namespace verbatim
