#include "drafting/drafter_stack.h"

#include <gtest/gtest.h>

#include "support/drafting.h"
#include "support/test_recipes.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

using test::model_level;
using test::ngram_level;
using test::recipe_of;
using test::self_level;

class DrafterStackTest : public testing::Test {
 protected:
  DrafterStack stack(const Recipe& recipe, bool with_draft_model = true) {
    return {recipe,
            evaluator_,
            {&target_, test::any_tokenizer()},
            with_draft_model ? TextModel{&draft_, test::any_tokenizer()} : TextModel{},
            64,
            team_};
  }
  std::string error_of(const Recipe& recipe, bool with_draft_model = true) {
    try {
      stack(recipe, with_draft_model);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  ThreadTeam team_{1};
  Decoder target_ = test::tiny_decoder(test::small_vocabulary(40, 1));
  Decoder draft_ = test::tiny_decoder(test::small_vocabulary(40, 2));
  Evaluator evaluator_{target_, team_};
};

TEST_F(DrafterStackTest, HasADrafterForEveryLevel) {
  DrafterStack drafters =
      stack(recipe_of("x", {self_level("mxfp4-w4a8", 8), model_level("full", 4), ngram_level(3)}));
  ASSERT_EQ(drafters.size(), 3U);
  EXPECT_NE(drafters.network(0), nullptr);
  EXPECT_NE(drafters.network(1), nullptr);
  EXPECT_EQ(drafters.network(2), nullptr);
  EXPECT_EQ(stack(recipe_of("plain", {})).size(), 0U);
}

TEST_F(DrafterStackTest, WithoutADraftModelSaysWhatToDo) {
  const std::string message =
      error_of(recipe_of("mine", {self_level("mxfp4-w4a8", 8), model_level("full", 4)}), false);
  EXPECT_NE(message.find("mine"), std::string::npos) << message;
  EXPECT_NE(message.find("--draft-model"), std::string::npos) << message;
}

TEST_F(DrafterStackTest, WithoutTheWeightsOfAReadingNamesThem) {
  for (const Recipe& recipe :
       {recipe_of("mine", {model_level("int4-w4a8", 4)}),
        recipe_of("mine", {model_level("full", 4), model_level("int4-w4a8", 4)}),
        recipe_of("mine", {self_level("int4-w4a8", 4)}),
        recipe_of("mine", {self_level("mxfp4-w4a8", 4), self_level("int4-w4a8", 4)})}) {
    const std::string message = error_of(recipe);
    EXPECT_NE(message.find("int4"), std::string::npos) << message;
  }
}

TEST_F(DrafterStackTest, SparseLevelsReadNoCodesAndAreNotPlanned) {
  for (const std::string cache : {"window", "snapkv"}) {
    DraftLevel level = self_level("full", 4);
    level.cache = cache;
    Recipe recipe = recipe_of("mine", {level});
    DrafterStack drafters = stack(recipe);
    EXPECT_NE(drafters.network(0)->kind().sparse, nullptr);
    recipe.cache.kind = CacheOptions::Kind::kInt8;
    EXPECT_NE(error_of(recipe).find("recipe mine: drafts with the cache \"" + cache + "\""),
              std::string::npos);
    recipe.cache.kind = CacheOptions::Kind::kHierarchical;
    EXPECT_NE(error_of(recipe).find("not in hierarchical"), std::string::npos);
    recipe.cache.kind = CacheOptions::Kind::kBf16;
    recipe.planned = true;
    EXPECT_NE(error_of(recipe).find("planner"), std::string::npos);
  }
}

TEST_F(DrafterStackTest, DraftsGoThroughFewerExpertsThanTheModelsTokens) {
  DraftLevel level = self_level("full", 4);
  level.experts = 1;
  const std::string none = error_of(recipe_of("mine", {level}));
  EXPECT_NE(none.find("recipe mine: "), std::string::npos) << none;
  EXPECT_NE(none.find("the model has none"), std::string::npos) << none;

  test::TinyModelOptions mixture = test::small_vocabulary(40, 3);
  mixture.model_type = "mixtral";
  mixture.experts_used = 3;
  const Decoder decoder = test::tiny_decoder(mixture);
  Evaluator evaluator(decoder, team_);
  const auto stack_with = [&](int32_t experts) {
    level.experts = experts;
    return DrafterStack(recipe_of("mine", {level}), evaluator, {&decoder, test::any_tokenizer()}, {}, 64,
                        team_);
  };
  EXPECT_EQ(stack_with(2).network(0)->kind().experts, 2);
  try {
    stack_with(3);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("3 experts"), std::string::npos) << error.what();
  }
}

TEST_F(DrafterStackTest, StatisticsStartAnew) {
  DrafterStack drafters = stack(recipe_of("x", {self_level("mxfp4-w4a8", 4), ngram_level(3)}));
  Sequence sequence = test::verified({1, 2, 3, 1, 2}, evaluator_);
  Sampler sampler(SamplingOptions{});
  drafters.observe(sequence);
  Draft draft;
  drafters.level(0).propose(sequence, sampler, {.length = 4, .nodes = 4}, 10, draft);
  EXPECT_EQ(drafters.level(0).stats.drafted, 4);
  EXPECT_GT(drafters.level(0).stats.passes, 0);
  EXPECT_GT(drafters.level(1).stats.drafted, 0);
  EXPECT_GT(drafters.level(0).stats.seconds, drafters.level(1).stats.seconds);
  drafters.reset_stats();
  for (const size_t level : {0, 1}) {
    EXPECT_EQ(drafters.level(level).stats.drafted, 0);
    EXPECT_EQ(drafters.level(level).stats.accepted, 0);
    EXPECT_EQ(drafters.level(level).stats.passes, 0);
    EXPECT_EQ(drafters.level(level).stats.seconds, 0.0);
  }
}

}  // namespace
}  // namespace verbatim
