#include <gtest/gtest.h>

#include "speculation/speculator.h"
#include "support/drafting.h"
#include "support/test_recipes.h"

namespace verbatim {
namespace {

/// Runs passes as they come, but says what a batch would, and declines drafts with little expected gain.
class BatchedRunner : public SingleRunner {
 public:
  using SingleRunner::SingleRunner;

  Matrix<const float> run(std::span<const Row> rows, const PassKind& kind, KvCache& cache,
                          int64_t first_logits_row) override {
    if (kind.drafts) expected.push_back(expected_tokens_);
    if (kind.drafts && expected_tokens_ < declined_below) return {};
    return SingleRunner::run(rows, kind, cache, first_logits_row);
  }
  void expect_gain(const ExpectedGain& gain) override { expected_tokens_ = gain.tokens; }
  bool gains_by_drafts() const override { return gains; }
  KeepThresholds keep_thresholds() const override { return {keep_threshold, keep_threshold}; }
  void observe_draft(int64_t kept, bool cut) override {
    all_kept += kept;
    drafts_cut += cut ? 1 : 0;
  }

  bool gains = true;
  double keep_threshold = 0.0;
  double declined_below = 0.0;
  std::vector<double> expected;
  int64_t all_kept = 0;
  int64_t drafts_cut = 0;

 private:
  double expected_tokens_ = 0.0;
};

/// A tiny model that drafts for itself.
class SharedPasses : public testing::Test {
 protected:
  struct Run {
    std::vector<int32_t> tokens;
    Stats stats;
    double drafted() const {
      return static_cast<double>(stats.drafted) / static_cast<double>(stats.target_passes);
    }
  };

  Run generate(const Recipe& recipe, int64_t sequences) {
    const TextModel model{&target_, test::any_tokenizer()};
    auto drafters = std::make_unique<DrafterStack>(recipe, evaluator_, model, model, 256, team_);
    Speculator speculator(recipe, std::move(drafters), evaluator_);
    Sequence sequence{{3, 1, 4, 1, 5, 9}, std::make_unique<DenseCache>(target_.cache_shape(), 256)};
    Run run;
    speculator.begin(SamplingOptions{});
    speculator.set_batch(sequences);
    while (!speculator.prefill(sequence, 64, run.stats)) {
    }
    runner_->expected.clear();
    runner_->all_kept = 0;
    runner_->drafts_cut = 0;
    const size_t end = sequence.tokens.size() + 100;
    while (sequence.tokens.size() < end) {
      speculator.step(sequence, static_cast<int64_t>(end - sequence.tokens.size()), run.stats);
    }
    speculator.end(run.stats);
    run.tokens = std::move(sequence.tokens);
    return run;
  }

  static Recipe recipe(float threshold) {
    DraftLevel level = test::self_level("mxfp4-w4a8", 6);
    level.threshold = threshold;
    return test::recipe_of("shared", {level});
  }

  ThreadTeam team_{1};
  Decoder target_ = test::tiny_decoder(test::small_vocabulary(40));
  BatchedRunner* runner_ = new BatchedRunner(target_, team_);
  Evaluator evaluator_{std::unique_ptr<PassRunner>(runner_)};
};

TEST_F(SharedPasses, StopWhereTheBatchSaysNotTheRecipe) {
  const Run alone = generate(recipe(1.0f), 1);
  EXPECT_LE(alone.drafted(), 1.0) << "nothing is as sure as that";
  runner_->keep_threshold = 0.01;
  EXPECT_EQ(generate(recipe(1.0f), 1).drafted(), alone.drafted()) << "one sequence goes by its recipe";
  const Run lax = generate(recipe(1.0f), 8);
  EXPECT_GT(lax.drafted(), 2.0);
  runner_->keep_threshold = 0.9;
  const Run strict = generate(recipe(1.0f), 8);
  EXPECT_LT(strict.drafted(), lax.drafted());
  EXPECT_EQ(lax.tokens, alone.tokens);
  EXPECT_EQ(strict.tokens, alone.tokens);
}

TEST_F(SharedPasses, GoByTheRecipeWhileNothingIsKnown) {
  EXPECT_EQ(generate(recipe(0.4f), 8).drafted(), generate(recipe(0.4f), 1).drafted());
}

TEST_F(SharedPasses, KeepTheRuleThatDecidesWhatIsSaid) {
  for (const Recipe::Acceptance acceptance : {Recipe::Acceptance::kBild, Recipe::Acceptance::kRejection}) {
    Recipe lossy = recipe(0.1f);
    lossy.acceptance = acceptance;
    runner_->keep_threshold = 0.0;
    runner_->declined_below = 0.0;
    const Run alone = generate(lossy, 1);
    ASSERT_GT(alone.stats.drafted, 0);
    runner_->keep_threshold = 0.9;
    runner_->declined_below = 1000.0;
    const Run shared = generate(lossy, 8);
    EXPECT_EQ(shared.tokens, alone.tokens);
    EXPECT_EQ(shared.stats.drafted, alone.stats.drafted);
  }
}

TEST_F(SharedPasses, DraftNothingWhileTheBatchGainsNothingByIt) {
  const Run gaining = generate(recipe(0.1f), 8);
  ASSERT_GT(gaining.stats.drafted, 0);
  runner_->gains = false;
  EXPECT_GT(generate(recipe(0.1f), 1).stats.drafted, 0) << "one sequence goes by its recipe";
  const Run losing = generate(recipe(0.1f), 8);
  EXPECT_EQ(losing.stats.drafted, 0);
  EXPECT_EQ(losing.tokens, gaining.tokens);
  for (const Recipe::Acceptance acceptance : {Recipe::Acceptance::kBild, Recipe::Acceptance::kRejection}) {
    Recipe lossy = recipe(0.1f);
    lossy.acceptance = acceptance;
    EXPECT_GT(generate(lossy, 8).stats.drafted, 0) << "its drafts decide what is said";
  }
}

TEST_F(SharedPasses, ExpectLessTheFurtherTheyGo) {
  runner_->keep_threshold = 0.01;
  const Run run = generate(recipe(0.0f), 8);
  EXPECT_EQ(runner_->all_kept, run.stats.accepted);
  EXPECT_GT(runner_->drafts_cut, 0);
  EXPECT_LT(runner_->drafts_cut, run.stats.target_passes);
  const std::vector<double>& expected = runner_->expected;
  ASSERT_GT(expected.size(), 20u);
  size_t begun = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_GT(expected[i], 0.0);
    EXPECT_LE(expected[i], 1.0);
    if (i == 0 || expected[i] >= expected[i - 1]) ++begun;
  }
  EXPECT_LE(begun, static_cast<size_t>(run.stats.target_passes));
}

TEST_F(SharedPasses, EndWhereAPassIsDeclined) {
  runner_->keep_threshold = 0.01;
  const Run all = generate(recipe(0.0f), 8);
  runner_->declined_below = 0.5;
  const Run some = generate(recipe(0.0f), 8);
  EXPECT_LT(some.drafted(), all.drafted());
  EXPECT_EQ(some.tokens, all.tokens);
  runner_->declined_below = 2.0;
  const Run none = generate(recipe(0.0f), 8);
  EXPECT_EQ(none.stats.drafted, 0);
  EXPECT_EQ(none.tokens, all.tokens);
}

}  // namespace
}  // namespace verbatim
