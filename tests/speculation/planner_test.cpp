#include "speculation/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/drafting.h"
#include "support/test_recipes.h"

namespace verbatim {
namespace {

using test::model_level;
using test::ngram_level;
using test::self_level;
using test::Tokens;
using ::testing::Each;
using ::testing::ElementsAre;

/// What a step of plain decoding takes here, in seconds. The planner reads a clock while a tiny model drafts;
/// beside days that counts for nothing, so that nothing depends on it.
constexpr double kPlain = 1e6;

/// Costs that are the same for any number of rows.
PassCosts flat(double seconds) {
  std::array<double, PassCosts::kRows.size()> all{};
  all.fill(seconds);
  return PassCosts(all);
}

/// Costs of so much for a pass over one row, and so much for every other row.
PassCosts line(double pass, double row) {
  std::array<double, PassCosts::kRows.size()> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = pass + row * static_cast<double>(PassCosts::kRows[i] - 1);
  return PassCosts(all);
}

/// Costs of one pass for up to 16 rows, and another for more.
PassCosts tiles(double first, double more) {
  std::array<double, PassCosts::kRows.size()> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = PassCosts::kRows[i] <= 16 ? first : more;
  return PassCosts(all);
}

/// A token that nothing drafts.
constexpr int32_t kUnforeseen = 1000;

/// What became of one step.
struct Step {
  std::string plan;
  int64_t drafted;
  int64_t appended;
  double seconds;
};

double tokens_per_second(const std::vector<Step>& steps) {
  double tokens = 0;
  double seconds = 0;
  for (const Step& step : steps) {
    tokens += static_cast<double>(step.appended);
    seconds += step.seconds;
  }
  return tokens / seconds;
}

int64_t count_of(const std::vector<Step>& steps, const std::string& plan) {
  return std::count_if(steps.begin(), steps.end(), [&](const Step& step) { return step.plan == plan; });
}

/// A planner with the real drafters of a tiny model. How long passes take and how much of the drafts comes
/// true is made up: it always stands at the end of the same text.
class Decoding {
 public:
  /// `draft_pass`: the seconds of a pass of the first level, where that is a network. `truth` is what follows
  /// the text; without it, what the first level drafts. `draft_row`: the seconds of every row of a draft pass
  /// but the first.
  Decoding(Evaluator& evaluator, ThreadTeam& team, std::vector<DraftLevel> levels, const PassCosts& target,
           double draft_pass, const Tokens& text, Tokens truth = {}, double draft_row = 0.0)
      : recipe_(planned(std::move(levels))),
        model_{&evaluator.decoder(), test::any_tokenizer()},
        drafters_(recipe_, evaluator, model_, model_, 128, team),
        target_(target),
        draft_pass_(draft_pass),
        draft_row_(draft_row),
        sequence_(test::verified(text, evaluator)),
        planner_(recipe_, drafters_, {target, costs_of_levels()}),
        truth_(std::move(truth)) {
    drafters_.observe(sequence_);
    if (!truth_.empty()) return;
    Draft draft;
    drafters_.level(0).propose(sequence_, sampler_, {.length = 16, .nodes = 16}, 100, draft);
    truth_ = test::tokens_of(draft);
    drafters_.reset_stats();
  }

  /// A step of whose draft at most `kept` tokens come true, and which takes `slowness` times what it should.
  /// `certain` tokens come before the draft.
  Step step(int64_t kept, double slowness = 1.0, int64_t room = 100, int64_t certain = 0) {
    const std::vector<PlanStats> before = planner_.chosen();
    const int64_t passes_before = drafters_.level(0).stats.passes;
    draft_ = {};
    if (sequences_ > 1) {
      planner_.propose_shared(sequence_, sampler_, room, certain, {}, draft_);
    } else {
      planner_.propose(sequence_, sampler_, room, certain, draft_);
    }
    Tokens appended;
    for (int32_t at = DraftNode::kRoot;;) {
      const auto depth = std::ssize(appended);
      appended.push_back(depth < kept && depth < std::ssize(truth_) ? truth_[static_cast<size_t>(depth)]
                                                                    : kUnforeseen);
      at = draft_.child(at, appended.back());
      if (at == DraftNode::kRoot) break;
    }
    const int64_t passes = drafters_.level(0).stats.passes - passes_before;
    double draft = slowness * draft_pass_ * static_cast<double>(passes);
    if (passes > 0 && draft_row_ > 0.0) {
      for (const int64_t rows : drafters_.network(0)->pass_rows()) {
        draft += slowness * draft_row_ * static_cast<double>(rows - 1);
      }
    }
    const Tokens before_draft(static_cast<size_t>(certain), kUnforeseen);
    draft_.put_before(before_draft, TokenOrigin::kStructure);
    appended.insert(appended.begin(), before_draft.begin(), before_draft.end());
    const double verify = slowness * target_.of(draft_.size() + 1);
    planner_.learn(draft_, appended, draft, verify);
    Step step{"", draft_.size(), std::ssize(appended), draft + verify};
    for (size_t i = 0; i < before.size(); ++i) {
      if (planner_.chosen()[i].steps > before[i].steps) step.plan += planner_.chosen()[i].name;
    }
    return step;
  }
  std::vector<Step> steps(int count, int64_t kept) {
    std::vector<Step> all;
    for (int i = 0; i < count; ++i) all.push_back(step(kept));
    return all;
  }

  /// Makes it one of so many sequences that share passes.
  void share(int64_t sequences) {
    sequences_ = sequences;
    planner_.set_batch(sequences);
  }

  Planner& planner() { return planner_; }
  DrafterStack& drafters() { return drafters_; }
  const Draft& draft() const { return draft_; }  // of the last step

 private:
  static Recipe planned(std::vector<DraftLevel> levels) {
    Recipe recipe = test::recipe_of("planned", std::move(levels));
    recipe.planned = true;
    return recipe;
  }
  std::vector<std::optional<PassCosts>> costs_of_levels() const {
    std::vector<std::optional<PassCosts>> costs;
    for (const DraftLevel& level : recipe_.levels) {
      if (level.kind == DraftLevel::Kind::kNgram) {
        costs.emplace_back();
      } else {
        costs.emplace_back(line(draft_pass_, draft_row_));
      }
    }
    return costs;
  }

  Recipe recipe_;
  TextModel model_;
  DrafterStack drafters_;
  PassCosts target_;
  double draft_pass_;
  double draft_row_;
  Sequence sequence_;
  Sampler sampler_{SamplingOptions{.temperature = 0.0f}};
  int64_t sequences_ = 1;
  Draft draft_;
  Planner planner_;
  Tokens truth_;
};

class PlannerTest : public testing::Test {
 protected:
  static test::TinyModelOptions options() {
    test::TinyModelOptions options = test::small_vocabulary(40);
    options.layers = 1;
    return options;
  }
  /// Drafts with the model itself, at most 6 tokens.
  Decoding self(const PassCosts& target, double draft_pass) {
    return {evaluator_, team_, {self_level("mxfp4-w4a8", 6)}, target, draft_pass, {1, 2, 3, 4, 5}};
  }
  /// Drafts with n-grams a text that they have seen several times over.
  Decoding ngrams(const PassCosts& target, int32_t length) {
    Tokens text;
    Tokens truth;
    for (int32_t i = 0; i < 60; ++i) text.push_back(i % 6);
    for (int32_t i = 0; i < length; ++i) truth.push_back(i % 6);
    return {evaluator_, team_, {ngram_level(length)}, target, 0.0, text, truth};
  }

  ThreadTeam team_{1};
  Decoder decoder_ = test::tiny_decoder(options());
  Evaluator evaluator_{decoder_, team_};
};

TEST_F(PlannerTest, TokensThatAreCertainSpeakForNoPlan) {
  // Drafts that never come true stay losers, however many tokens every step has for nothing.
  Decoding decoding = self(flat(kPlain), 0.3 * kPlain);
  std::vector<Step> steps;
  for (int i = 0; i < 200; ++i) steps.push_back(decoding.step(0, 1.0, 100, 8));
  EXPECT_GT(count_of(steps, "plain"), 150);
  // And drafts that come true stay winners.
  Decoding gaining = self(flat(kPlain), 0.1 * kPlain);
  steps.clear();
  for (int i = 0; i < 200; ++i) steps.push_back(gaining.step(6, 1.0, 100, 8));
  EXPECT_GT(count_of(steps, "self"), 150);
}

TEST_F(PlannerTest, RowsOfCertainTokensSpeakAgainstNoPlan) {
  // Every row costs a tenth of a pass, so that thirty of them take longer than all that the plan itself does.
  Decoding decoding = self(line(kPlain, 0.1 * kPlain), 0.05 * kPlain);
  std::vector<Step> steps;
  for (int i = 0; i < 100; ++i) steps.push_back(decoding.step(2, 1.0, 100, 30));
  EXPECT_GT(count_of(steps, "self"), 80);
  EXPECT_GT(count_of(decoding.steps(20, 2), "self"), 15);
}

TEST_F(PlannerTest, RowsOfCertainTokensCountWhereRowsAreDear) {
  // Sixteen rows cost little, more of them a second pass: behind twelve certain tokens less is drafted.
  Decoding decoding = self(tiles(kPlain, 4 * kPlain), 0.05 * kPlain);
  decoding.steps(20, 6);
  const Step alone = decoding.step(6);
  const Step behind = decoding.step(6, 1.0, 100, 12);
  EXPECT_EQ(alone.drafted, 6);
  EXPECT_LE(behind.drafted, 12 + 3);
}

TEST_F(PlannerTest, PlansAreTheDraftersAndTheOnesInsideThem) {
  Decoding decoding(evaluator_, team_,
                    {self_level("mxfp4-w4a8", 6), model_level("mxfp4-w4a8", 4), ngram_level(4)}, flat(kPlain),
                    0.1 * kPlain, {1, 2, 3, 4, 5});
  const auto names = [&] {
    std::vector<std::string> names;
    for (const PlanStats& plan : decoding.planner().chosen()) names.push_back(plan.name);
    return names;
  };
  const auto all = ElementsAre("plain", "self", "self <- model", "self <- ngram", "model", "ngram");
  EXPECT_THAT(names(), all);
  for (const Step& step : decoding.steps(40, 3)) EXPECT_FALSE(step.plan.empty());
  int64_t steps = 0;
  for (const PlanStats& plan : decoding.planner().chosen()) steps += plan.steps;
  EXPECT_EQ(steps, 40);
  EXPECT_GT(decoding.planner().expected_verify(), 0.0);
  decoding.planner().begin();
  EXPECT_THAT(names(), all);
  for (const PlanStats& plan : decoding.planner().chosen()) EXPECT_EQ(plan.steps, 0) << plan.name;
  EXPECT_EQ(decoding.planner().expected_verify(), 0.0);
}

TEST_F(PlannerTest, DraftsNothingWhereThereIsNoRoom) {
  Decoding decoding = self(flat(kPlain), 0.1 * kPlain);
  Step step = decoding.step(100, 1.0, 0);
  EXPECT_EQ(step.plan, "plain");
  EXPECT_EQ(step.drafted, 0);
  for (int i = 0; i < 30; ++i) decoding.step(100);
  step = decoding.step(100, 1.0, 2);
  EXPECT_EQ(step.plan, "self");
  EXPECT_EQ(step.drafted, 2);
}

TEST_F(PlannerTest, PrefersAPlanThatPromisesThreePercentMoreThanPlainDecoding) {
  // Before it knows better it expects of a drafted token what the calibration says, and four of five at
  // least.
  const auto first_plan = [&](const DraftLevel& level, double kept, double gain) {
    const double draft_pass = ((1.0 + kept) / gain - 1.0) * kPlain;
    return Decoding(evaluator_, team_, {level}, flat(kPlain), draft_pass, {1, 2, 3, 4, 5}).step(0).plan;
  };
  const DraftLevel self = self_level("mxfp4-w4a8", 1);
  const DraftLevel model = model_level("mxfp4-w4a8", 1);
  const double self_kept = initial_calibration(self).mean();
  ASSERT_LT(initial_calibration(model).mean(), 0.8);
  EXPECT_EQ(first_plan(self, self_kept, 1.5), "self");
  EXPECT_EQ(first_plan(self, self_kept, 1.04), "self");
  EXPECT_EQ(first_plan(self, self_kept, 1.02), "plain");
  EXPECT_EQ(first_plan(self, self_kept, 0.9), "plain");
  EXPECT_EQ(first_plan(model, 0.8, 1.04), "model");
  EXPECT_EQ(first_plan(model, 0.8, 1.02), "plain");
}

TEST_F(PlannerTest, ExpectsOfAnUnusedPlanTheLengthThatPromisesTheMost) {
  // The third row is dear: one drafted token gains a fifth, six would lose.
  std::array<double, PassCosts::kRows.size()> costs{};
  costs.fill(4 * kPlain);
  costs[0] = kPlain;
  costs[1] = 1.25 * kPlain;
  EXPECT_EQ(self(PassCosts(costs), 0.35 * kPlain).step(6).plan, "self");
  // The second row is dear, and others cost nothing more: one drafted token would lose, six gain.
  costs.fill(2.5 * kPlain);
  costs[0] = kPlain;
  EXPECT_EQ(self(PassCosts(costs), 0.1 * kPlain).step(6).plan, "self");
}

TEST_F(PlannerTest, ExpectsOfAnUnusedPlanTheMachineAsItRunsNow) {
  // All passes take half of what was measured before. A plan that was never used takes half as long, too.
  Decoding decoding = self(line(kPlain, 0.25 * kPlain), 0.35 * kPlain);
  for (int i = 0; i < 12; ++i) decoding.step(0, 0.5, 0);  // without room for a draft
  EXPECT_EQ(decoding.step(6, 0.5).plan, "self");
}

TEST_F(PlannerTest, ExpectsOfAnUnusedPlanWhatABatchLeavesRoomFor) {
  // Alone, nine rows are those that gain the most; in a batch of eight only two rows of each are cheap.
  Decoding decoding(evaluator_, team_, {model_level("mxfp4-w4a8", 8)}, tiles(kPlain, 8 * kPlain),
                    0.02 * kPlain, {1, 2, 3, 4, 5});
  decoding.share(8);
  EXPECT_EQ(decoding.step(2).plan, "model");
}

TEST_F(PlannerTest, AFirstStepThatWasInterruptedCountsOnce) {
  Decoding decoding = self(line(kPlain, 0.2 * kPlain), 0.2 * kPlain);
  ASSERT_EQ(decoding.step(6, 1000.0).plan, "self");
  EXPECT_EQ(decoding.step(6).plan, "self");
}

TEST_F(PlannerTest, PrefersNgramsThatPromiseThreePercentMoreThanPlainDecoding) {
  Decoding any = ngrams(flat(kPlain), 8);
  ASSERT_EQ(any.step(0).plan, "ngram");
  double promised = 1.0;
  for (const DraftNode& node : any.draft().nodes) promised += node.path;
  ASSERT_GT(promised, 2.0);
  const auto first_plan = [&](double gain) {
    std::array<double, PassCosts::kRows.size()> costs{};
    costs.fill(promised / gain * kPlain);
    costs[0] = kPlain;
    return ngrams(PassCosts(costs), 8).step(0).plan;
  };
  EXPECT_EQ(first_plan(1.04), "ngram");
  EXPECT_EQ(first_plan(1.02), "plain");
}

TEST_F(PlannerTest, FallsBackToPlainDecodingWhenDraftsAreRejected) {
  Decoding decoding = self(line(kPlain, 0.01 * kPlain), 0.1 * kPlain);
  const std::vector<Step> predictable = decoding.steps(100, 100);
  EXPECT_EQ(count_of(predictable, "self"), 100);
  EXPECT_GT(tokens_per_second(predictable) * kPlain, 3.0);
  decoding.steps(100, 0);
  const std::vector<Step> later = decoding.steps(1000, 0);
  EXPECT_LE(count_of(later, "self"), 1000 / 32);
  EXPECT_GE(tokens_per_second(later) * kPlain, 0.98);
}

TEST_F(PlannerTest, FallsBackSoonWhenDraftsAreRejectedFromTheBeginning) {
  for (const double price : {0.05, 0.1, 0.3, 1.0, 3.0}) {
    Decoding decoding = self(line(kPlain, 0.01 * kPlain), price * kPlain);
    EXPECT_LE(count_of(decoding.steps(32, 0), "self"), 20) << price;
    EXPECT_GE(tokens_per_second(decoding.steps(1000, 0)) * kPlain, 0.98) << price;
  }
}

TEST_F(PlannerTest, FallsBackFromNgramsThatAreWrongAndReturnsAsTheyComeTrue) {
  Decoding decoding = ngrams(line(kPlain, 0.05 * kPlain), 16);
  EXPECT_EQ(decoding.step(0).plan, "ngram");
  EXPECT_LE(count_of(decoding.steps(100, 0), "ngram"), 10);
  // They are asked at every step, so that they are judged though nobody is shown what they say.
  const std::vector<Step> back = decoding.steps(200, 100);
  EXPECT_THAT(std::vector(back.end() - 50, back.end()), Each(testing::Field(&Step::plan, "ngram")));
  EXPECT_EQ(back.back().drafted, 16);
}

TEST_F(PlannerTest, LeavesOutAnInnerDrafterThatHelpsNobodyWithinAFewSteps) {
  Tokens text;
  for (int32_t i = 0; i < 60; ++i) text.push_back(i % 6);
  Decoding decoding(evaluator_, team_, {self_level("mxfp4-w4a8", 6), ngram_level(6)},
                    line(kPlain, 0.01 * kPlain), 0.2 * kPlain, text, {}, 0.1 * kPlain);
  // On a machine that is quicker than when it was measured. (What passes of drafts take is read off the
  // clock, and so nothing here: this is about what verification would have taken.)
  std::vector<Step> steps;
  for (int i = 0; i < 40; ++i) steps.push_back(decoding.step(100, 0.4));
  EXPECT_GE(count_of(steps, "self <- ngram"), 1);
  EXPECT_GE(count_of(steps, "self"), 15);
}

TEST_F(PlannerTest, MeasuresANetworkBeforeNgramsDraftInItsStead) {
  Tokens text;
  Tokens truth;
  for (int32_t i = 0; i < 60; ++i) text.push_back(i % 6);
  for (int32_t i = 0; i < 30; ++i) truth.push_back(i % 6);
  Decoding decoding(evaluator_, team_, {self_level("mxfp4-w4a8", 6), ngram_level(16)},
                    line(kPlain, 0.01 * kPlain), 0.2 * kPlain, text, truth);
  const std::vector<Step> steps = decoding.steps(60, 100);
  EXPECT_EQ(count_of({steps.begin(), steps.begin() + 6}, "ngram"), 0);
  EXPECT_GE(count_of({steps.end() - 20, steps.end()}, "ngram"), 15);
  // It is measured again after 16 steps without it, as long as that costs little.
  const std::vector<Step> later = decoding.steps(1000, 100);
  EXPECT_GE(count_of(later, "ngram"), 900);
  EXPECT_GE(count_of(later, "self") + count_of(later, "self <- ngram"), 2);
}

TEST_F(PlannerTest, NgramsDoNotReplaceANetworkThatPromisesAsMuch) {
  Tokens text;
  for (int32_t i = 0; i < 60; ++i) text.push_back(i % 6);
  // A network that is right and costs next to nothing.
  Decoding decoding(evaluator_, team_, {self_level("mxfp4-w4a8", 16), ngram_level(16)},
                    line(kPlain, 0.01 * kPlain), 1e-6 * kPlain, text);
  const std::vector<Step> steps = decoding.steps(100, 100);
  EXPECT_EQ(count_of(steps, "ngram"), 0);
}

TEST_F(PlannerTest, TriesALosingPlanAgainAfter16To256Steps) {
  Decoding decoding = self(line(kPlain, 0.01 * kPlain), 0.1 * kPlain);
  std::vector<int64_t> plain_between;  // steps that draft
  int64_t plain = 0;
  for (const Step& step : decoding.steps(3000, 0)) {
    if (step.plan == "plain") {
      ++plain;
    } else {
      if (plain > 0) plain_between.push_back(plain);
      plain = 0;
    }
  }
  ASSERT_GE(plain_between.size(), 8U);
  EXPECT_TRUE(std::is_sorted(plain_between.begin(), plain_between.end()));
  EXPECT_GE(plain_between.front(), 16);
  EXPECT_LE(plain_between.front(), 64);
  EXPECT_EQ(plain_between.back(), 256);
}

TEST_F(PlannerTest, RecoversWithinAFewTrialsWhenDraftsAreKeptAgain) {
  for (const double price : {0.05, 0.1, 0.2, 0.3}) {
    Decoding decoding = self(line(kPlain, 0.01 * kPlain), price * kPlain);
    decoding.steps(1000, 0);
    decoding.steps(4 * 257, 100);
    const std::vector<Step> recovered = decoding.steps(20, 100);
    EXPECT_EQ(count_of(recovered, "self"), 20) << price;
    EXPECT_GE(tokens_per_second(recovered) * kPlain, 2.0) << price;
  }
}

/// Expects that 3000 steps spend no more than two percent of the time on trials, and make at least `fewest`
/// of them.
void expect_few_trials(Decoding decoding, int fewest) {
  double lost = 0;
  double all = 0;
  int trials = 0;
  for (int i = 0; i < 3000; ++i) {
    const Step step = decoding.step(0);
    if (step.plan == "self") {
      ++trials;
      EXPECT_LE(lost, 0.02001 * all) << "before step " << i;
      lost += step.seconds - kPlain * static_cast<double>(step.appended);
    }
    all += step.seconds;
  }
  EXPECT_GE(trials, fewest);
  EXPECT_GT(lost, 0.0);
}

TEST_F(PlannerTest, TrialsTakeNoMoreThanTwoPercentOfTheTime) {
  for (const double price : {1.0, 3.0, 10.0}) {
    SCOPED_TRACE(price);
    expect_few_trials(self(flat(kPlain), price * kPlain), 5);
  }
}

TEST_F(PlannerTest, TriesPlainDecodingWhereDraftsGainLittle) {
  // Two tokens for the time of one and a half: plain decoding might have become better.
  Decoding little(evaluator_, team_, {self_level("mxfp4-w4a8", 1)}, line(kPlain, 0.05 * kPlain), 0.4 * kPlain,
                  {1, 2, 3, 4, 5});
  const std::vector<Step> steps = little.steps(500, 1);
  EXPECT_GT(count_of(steps, "plain"), 0);
  EXPECT_LT(count_of(steps, "plain"), 500 / 16);
  Decoding much = self(line(kPlain, 0.05 * kPlain), 0.05 * kPlain);
  EXPECT_EQ(count_of(much.steps(500, 100), "plain"), 0);
}

TEST_F(PlannerTest, DraftsGetLongerTheMoreOfThemIsKept) {
  const auto length = [&](int64_t kept) {
    Decoding decoding = ngrams(line(kPlain, 0.05 * kPlain), 16);
    decoding.steps(150, kept);
    int64_t drafted = 0;
    for (const Step& step : decoding.steps(10, kept)) drafted += step.drafted;
    return static_cast<double>(drafted) / 10.0;
  };
  EXPECT_EQ(length(0), 0.0);
  EXPECT_GT(length(1), 0.0);
  EXPECT_LT(length(1), length(2));
  EXPECT_LT(length(2), length(8));
  EXPECT_EQ(length(100), 16.0);
}

TEST_F(PlannerTest, DraftsOfANetworkGetLongerTheMoreOfThemIsKept) {
  const auto length = [&](int64_t kept) {
    Decoding decoding = self(line(kPlain, 0.1 * kPlain), 0.02 * kPlain);
    decoding.steps(150, kept);
    double drafted = 0;
    const std::vector<Step> steps = decoding.steps(50, kept);
    for (const Step& step : steps) drafted += static_cast<double>(step.plan == "self" ? step.drafted : 0);
    return drafted / static_cast<double>(std::max<int64_t>(count_of(steps, "self"), 1));
  };
  EXPECT_LT(length(0), length(1));
  EXPECT_LT(length(1), length(100));
  EXPECT_EQ(length(100), 6.0);
}

// Where memory bounds few rows and products bound many, the first rows are free.
TEST_F(PlannerTest, ANetworkDraftsAsManyRowsAsAreCheapHoweverDearManyMoreWouldBe) {
  std::array<double, PassCosts::kRows.size()> all{};
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = kPlain * (1.0 + 0.5 * static_cast<double>(std::max<int64_t>(PassCosts::kRows[i] - 4, 0)));
  }
  Decoding decoding = self(PassCosts(all), 0.1 * kPlain);
  decoding.steps(100, 3);
  double drafted = 0;
  const std::vector<Step> steps = decoding.steps(50, 3);
  for (const Step& step : steps) drafted += static_cast<double>(step.drafted);
  EXPECT_GT(drafted / static_cast<double>(steps.size()), 2.5);
}

// Whether they are worth it, the batch decides when it knows the drafts of all.
TEST_F(PlannerTest, OffersABatchWhatItWouldNotTakeAlone) {
  Decoding alone = ngrams(line(kPlain, kPlain), 8);
  Decoding batch = ngrams(line(kPlain, kPlain), 8);
  batch.share(64);
  for (int i = 0; i < 40; ++i) {
    alone.step(1);
    batch.step(1);
  }
  EXPECT_EQ(alone.step(1).drafted, 0);
  EXPECT_GT(batch.step(1).drafted, 0);
  const std::vector<DraftNode>& nodes = batch.draft().nodes;
  EXPECT_TRUE(std::is_sorted(nodes.begin(), nodes.end(),
                             [](const DraftNode& a, const DraftNode& b) { return a.path > b.path; }));
  // And alone again as if nothing had been.
  batch.share(1);
  batch.steps(40, 1);
  EXPECT_EQ(batch.step(1).drafted, 0);
}

TEST_F(PlannerTest, AsksABatchAboutEveryPassOfANetwork) {
  Decoding batch = self(flat(kPlain), 10 * kPlain);
  EXPECT_GT(count_of(batch.steps(60, 0), "plain"), 40) << "alone it decodes plainly";
  batch.share(4);
  EXPECT_EQ(count_of(batch.steps(40, 0), "self"), 40);
  batch.share(1);
  EXPECT_GT(count_of(batch.steps(60, 0), "plain"), 40);
}

TEST_F(PlannerTest, GivesANetworkNgramsToVerifyInABatch) {
  Tokens text;
  for (int32_t i = 0; i < 60; ++i) text.push_back(i % 6);
  Decoding decoding(evaluator_, team_, {self_level("mxfp4-w4a8", 6), ngram_level(16)}, flat(kPlain),
                    0.01 * kPlain, text, {}, 0.01 * kPlain);
  decoding.share(4);
  EXPECT_EQ(count_of(decoding.steps(40, 100), "self <- ngram"), 40);
}

TEST_F(PlannerTest, DraftsStayWithinATileUnlessMoreThanThatIsKept) {
  const auto drafted = [&](const PassCosts& costs, int64_t kept) {
    Decoding decoding = ngrams(costs, 24);
    decoding.steps(30, kept);
    std::vector<int64_t> drafted;
    for (const Step& step : decoding.steps(20, kept)) drafted.push_back(step.drafted);
    return drafted;
  };
  const PassCosts costs = tiles(kPlain, 3.0 * kPlain);
  // The last token needs a row, too.
  EXPECT_THAT(drafted(costs, 4), Each(15));
  EXPECT_THAT(drafted(costs, 8), Each(15));
  EXPECT_THAT(drafted(costs, 100), Each(24));
  EXPECT_THAT(drafted(flat(kPlain), 4), Each(24));  // where there is no border
}

TEST_F(PlannerTest, AStepThatWasInterruptedDoesNotDecide) {
  Decoding decoding = self(flat(kPlain), 0.05 * kPlain);
  decoding.steps(50, 100);
  EXPECT_EQ(decoding.step(100, 1000.0).plan, "self");
  EXPECT_EQ(count_of(decoding.steps(50, 100), "self"), 50);
}

TEST_F(PlannerTest, CountsWhatNgramsOfferedOnlyWhereItWasShown) {
  Decoding decoding = ngrams(line(kPlain, 0.05 * kPlain), 8);
  int64_t shown = 0;
  int64_t came_true = 0;
  for (int i = 0; i < 200; ++i) {
    const Step step = decoding.step(i < 50 ? 0 : i < 100 ? 100 : i % 3);
    if (step.plan != "ngram") continue;
    shown += step.drafted;
    came_true += step.appended - 1;
  }
  const LevelStats& stats = decoding.drafters().level(0).stats;
  EXPECT_GT(came_true, 0);
  EXPECT_EQ(stats.accepted, came_true);
  EXPECT_GE(stats.drafted, shown);  // what was left out for its price counts as well
  // Nothing is added while plain decoding is used.
  decoding.steps(300, 0);
  const int64_t before = decoding.drafters().level(0).stats.drafted;
  EXPECT_EQ(count_of(decoding.steps(20, 0), "plain"), 20);
  EXPECT_EQ(decoding.drafters().level(0).stats.drafted, before);
}

TEST_F(PlannerTest, DecidesTheSameWhenToldTheSame) {
  const auto decode = [&](uint32_t seed) {
    Decoding decoding(evaluator_, team_,
                      {self_level("mxfp4-w4a8", 6), model_level("mxfp4-w4a8", 4, 2, 8), ngram_level(8)},
                      line(kPlain, 0.03 * kPlain), 0.1 * kPlain, {1, 2, 3, 1, 2, 3, 1, 2});
    std::minstd_rand random(seed);
    std::vector<std::string> decisions;
    for (int i = 0; i < 400; ++i) {
      const auto kept = static_cast<int64_t>(random() % (1 + static_cast<unsigned>(i) / 50));
      const Step step = decoding.step(kept, 0.8 + 0.1 * static_cast<double>(random() % 5));
      std::string decision = step.plan + ":";
      for (const DraftNode& node : decoding.draft().nodes)
        decision += " " + std::to_string(node.token) + "<" + std::to_string(node.parent);
      decisions.push_back(decision);
    }
    return decisions;
  };
  const std::vector<std::string> decisions = decode(1);
  EXPECT_EQ(decode(1), decisions);
  EXPECT_NE(decode(2), decisions);
}

}  // namespace
}  // namespace verbatim
