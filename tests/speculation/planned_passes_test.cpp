#include <gtest/gtest.h>

#include <numeric>

#include "speculation/speculator.h"
#include "support/drafting.h"
#include "support/test_recipes.h"

namespace verbatim {
namespace {

using test::model_level;
using test::ngram_level;
using test::self_level;

/// Costs that are so many seconds for each row, and so many for a pass.
PassCosts costs(double row, double pass) {
  std::array<double, PassCosts::kRows.size()> seconds{};
  for (size_t i = 0; i < seconds.size(); ++i) {
    seconds[i] = pass + row * static_cast<double>(PassCosts::kRows[i]);
  }
  return PassCosts(seconds);
}

/// A tiny model with a planner that was told its costs, or with drafters alone.
class PlannedPasses : public testing::Test {
 protected:
  /// Two generations in one sequence: what the first one counted must not stay.
  std::vector<Stats> generate(std::vector<DraftLevel> levels, PlanningCosts costs) {
    Recipe recipe = test::recipe_of("planned", std::move(levels));
    recipe.planned = true;
    const TextModel model{&target_, test::any_tokenizer()};
    auto drafters = std::make_unique<DrafterStack>(recipe, evaluator_, model, model, 128, team_);
    Speculator speculator(recipe, std::move(drafters), evaluator_, std::move(costs));
    Sequence sequence{prompt_, std::make_unique<DenseCache>(target_.cache_shape(), 128)};
    std::vector<Stats> all(2);
    for (Stats& stats : all) {
      speculator.begin(SamplingOptions{});
      while (!speculator.prefill(sequence, 64, stats)) {
      }
      const size_t end = sequence.tokens.size() + 50;
      while (sequence.tokens.size() < end) {
        speculator.step(sequence, static_cast<int64_t>(end - sequence.tokens.size()), stats);
      }
      speculator.end(stats);
    }
    return all;
  }

  const std::vector<int32_t> prompt_ = {3, 1, 4, 1, 5, 9};
  ThreadTeam team_{1};
  Decoder target_ = test::tiny_decoder(test::small_vocabulary(40));
  Evaluator evaluator_{target_, team_};
};

// The passes of this model take far less than what the table says here, so that a table which followed them
// would be found out.
TEST_F(PlannedPasses, AreComparedWithTheTableAsItWasMeasured) {
  const std::vector<Stats> both =
      generate({self_level("mxfp4-w4a8", 6), model_level("mxfp4-w4a8", 4), ngram_level(4)},
               {costs(0.5, 8.0), {costs(0.0, 0.25), costs(0.0, 0.125), {}}});
  ASSERT_GT(both.front().draft_passes, 0);  // nothing is known yet that speaks against it
  for (const Stats& stats : both) {
    const auto passes = static_cast<double>(stats.target_passes);
    const auto rows = static_cast<double>(stats.target_passes + stats.drafted);
    EXPECT_NEAR(stats.diagnostics.table_verify, 8.0 * passes + 0.5 * rows, 1e-9);
    EXPECT_LT(stats.diagnostics.expected_verify, stats.diagnostics.table_verify);
    ASSERT_EQ(stats.levels.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      const LevelStats& level = stats.levels[i];
      const double pass = i == 0 ? 0.25 : 0.125;
      EXPECT_NEAR(level.diagnostics.table_seconds, pass * static_cast<double>(level.passes), 1e-9) << i;
      EXPECT_EQ(level.diagnostics.seconds_passes > 0.0, level.passes > 0) << i;
      EXPECT_LE(level.diagnostics.seconds_passes, level.seconds) << i;
    }
    EXPECT_EQ(stats.diagnostics.table_draft,
              stats.levels[0].diagnostics.table_seconds + stats.levels[1].diagnostics.table_seconds);
    EXPECT_EQ(stats.diagnostics.seconds_draft_passes,
              stats.levels[0].diagnostics.seconds_passes + stats.levels[1].diagnostics.seconds_passes);
    EXPECT_LE(stats.diagnostics.seconds_draft_passes, stats.seconds_draft);
  }
}

TEST_F(PlannedPasses, ThatTheTableLacksAreLeftOut) {
  const Stats stats = generate({self_level("mxfp4-w4a8", 6)}, {costs(0.5, 8.0), {std::nullopt}}).front();
  ASSERT_GT(stats.draft_passes, 0);
  EXPECT_EQ(stats.diagnostics.table_draft, 0.0);
  EXPECT_EQ(stats.diagnostics.seconds_draft_passes, 0.0);
  EXPECT_GT(stats.diagnostics.table_verify, 0.0);
}

TEST_F(PlannedPasses, OfDraftersInDraftersAreEachComparedByTheirRows) {
  Evaluator own(target_, team_);
  NeuralDrafter inner(own, Reading::kMxfp4W4A8, DraftCache(target_.cache_shape(), 128), false);
  NeuralDrafter outer(evaluator_, Reading::kMxfp4W4A8, DraftCache(), false);
  outer.set_inner(&inner, {.length = 3, .nodes = 3});
  const PassCosts inner_costs = costs(0.0, 0.125);
  const PassCosts outer_costs = costs(0.5, 2.0);
  inner.set_costs(inner_costs);
  outer.set_costs(outer_costs);
  Sequence sequence = test::verified(prompt_, evaluator_);
  Sampler sampler{SamplingOptions{}};
  Draft draft;
  outer.propose(sequence, sampler, {.length = 12, .nodes = 12}, 100, draft);
  ASSERT_EQ(draft.size(), 12);
  ASSERT_GT(outer.stats.passes, 1);
  EXPECT_LT(outer.stats.passes, 12);  // the inner one drafts what this one says
  const std::vector<int64_t>& rows = outer.pass_rows();
  const auto all = static_cast<double>(std::accumulate(rows.begin(), rows.end(), int64_t{0}));
  EXPECT_NEAR(outer.stats.diagnostics.table_seconds,
              2.0 * static_cast<double>(outer.stats.passes) + 0.5 * all, 1e-9);
  EXPECT_NEAR(inner.stats.diagnostics.table_seconds, 0.125 * static_cast<double>(inner.stats.passes), 1e-9);
  EXPECT_LE(inner.stats.diagnostics.seconds_passes + outer.stats.diagnostics.seconds_passes,
            outer.stats.seconds);
}

TEST(PlanningPercent, IsOfTheTimeOfDecoding) {
  Stats stats;
  EXPECT_EQ(stats.planning_percent(), 0.0);
  stats.seconds_decode = 4.0;
  stats.seconds_planning = 0.02;
  EXPECT_DOUBLE_EQ(stats.planning_percent(), 0.5);
}

}  // namespace
}  // namespace verbatim
