#include "support/test_recipes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace verbatim::test {

namespace {

DraftLevel level(DraftLevel::Kind kind, int32_t length, int32_t breadth, int32_t nodes) {
  DraftLevel level;
  level.kind = kind;
  level.length = length;
  level.breadth = breadth;
  level.nodes = nodes;
  return level;
}

DraftLevel with_threshold(DraftLevel level, float threshold) {
  level.threshold = threshold;
  return level;
}

DraftLevel with_layers(DraftLevel level, int32_t layers) {
  level.layers = layers;
  return level;
}

DraftLevel with_vocabulary(DraftLevel level, int32_t vocabulary) {
  level.vocabulary = vocabulary;
  return level;
}

}  // namespace

DraftLevel self_level(const std::string& reading, int32_t length, int32_t breadth, int32_t nodes) {
  DraftLevel self = level(DraftLevel::Kind::kSelf, length, breadth, nodes);
  self.reading = reading;
  return self;
}

DraftLevel model_level(const std::string& reading, int32_t length, int32_t breadth, int32_t nodes) {
  DraftLevel model = level(DraftLevel::Kind::kModel, length, breadth, nodes);
  model.reading = reading;
  return model;
}

DraftLevel ngram_level(int32_t length, int32_t breadth, int32_t nodes) {
  return level(DraftLevel::Kind::kNgram, length, breadth, nodes);
}

Recipe recipe_of(const std::string& name, std::vector<DraftLevel> levels) {
  Recipe recipe;
  recipe.name = name;
  recipe.levels = std::move(levels);
  return recipe;
}

std::vector<Recipe> lossless_recipes() {
  std::vector<Recipe> recipes;
  for (const std::string& name : recipe_names()) {
    Recipe recipe = load_recipe(name);
    if (recipe.lossless() && !recipe.plain() && recipe.reading == "full")
      recipes.push_back(std::move(recipe));
  }
  return recipes;
}

std::string test_name(std::string recipe) {
  std::replace(recipe.begin(), recipe.end(), '-', '_');
  return recipe;
}

std::vector<Recipe> made_recipes(int32_t vocabulary) {
  return {
      recipe_of("self_leaves", {self_level("mxfp4-w4a8", 6, 3, 16)}),
      recipe_of("self_many_leaves", {with_threshold(self_level("mxfp4-w4a16", 8, 2, 48), 0.2f)}),
      recipe_of("self_longer_than_the_text", {self_level("int4-w4a8", 64)}),
      recipe_of("model_tree", {model_level("mxfp4-w4a8", 6, 3, 24)}),
      recipe_of("model_chain", {with_threshold(model_level("mxfp4-w4a16", 5), 0.3f)}),
      recipe_of("ngram_tree", {ngram_level(10, 3, 24)}),
      recipe_of("trees_on_two_levels",
                {self_level("mxfp4-w4a8", 10, 2, 24), model_level("mxfp4-w4a8", 5, 3, 15)}),
      recipe_of("self_model_ngram", {self_level("int4-w4a8", 12, 2, 20), model_level("mxfp4-w4a8", 6),
                                     with_threshold(ngram_level(4, 2, 8), 0.2f)}),
      recipe_of("self_self_ngram",
                {self_level("mxfp4-w4a16", 12), self_level("int4-w4a8", 5, 2, 9), ngram_level(3, 2, 6)}),
      recipe_of("self_early_exit_ngram", {self_level("mxfp4-w4a8", 8, 2, 12),
                                          with_layers(self_level("full", 4, 2, 8), 2), ngram_level(3)}),
      recipe_of("early_exit_ngram", {with_layers(self_level("full", 6, 2, 10), 3), ngram_level(4, 2, 8)}),
      recipe_of("model_ngram", {model_level("mxfp4-w4a8", 8, 2, 16), ngram_level(4, 3, 12)}),
      recipe_of("model_self", {model_level("mxfp4-w4a8", 8), self_level("int4-w4a8", 3, 2, 5)}),
      recipe_of("model_model", {model_level("full", 8), model_level("mxfp4-w4a8", 4, 2, 10)}),
      recipe_of("fewer_tokens",
                {with_vocabulary(self_level("mxfp4-w4a8", 8, 2, 12), vocabulary), ngram_level(3)}),
      recipe_of("model_tree_of_fewer_tokens",
                {with_vocabulary(model_level("mxfp4-w4a8", 5, 3, 20), vocabulary)}),
      recipe_of("four_levels", {self_level("mxfp4-w4a16", 16), self_level("int4-w4a8", 8),
                                model_level("mxfp4-w4a8", 4, 2, 6), ngram_level(3, 2, 6)}),
  };
}

std::vector<SamplingOptions> various_sampling() {
  return {
      {.temperature = 0.0f},
      {.repetition_penalty = 1.3f, .temperature = 0.0f},
      {.temperature = 0.7f, .seed = 1},
      {.temperature = 1.2f, .seed = 2},
      {.temperature = 1.2f, .top_k = 20, .seed = 3},
      {.temperature = 0.7f, .top_p = 0.8f, .seed = 4},
      {.repetition_penalty = 1.2f,
       .temperature = 0.7f,
       .top_k = 50,
       .top_p = 0.95f,
       .min_p = 0.02f,
       .seed = 5},
      {.repetition_penalty = 0.8f,
       .presence_penalty = 0.5f,
       .frequency_penalty = 0.3f,
       .temperature = 1.2f,
       .seed = 6},
  };
}

void expect_consistent(const Stats& stats, const Recipe& recipe, bool whole) {
  SCOPED_TRACE("statistics of " + recipe.name);
  if (whole && stats.generated_tokens > 0) {
    // One token comes from the prompt; every pass adds one to the drafts that it keeps.
    EXPECT_EQ(stats.generated_tokens, 1 + stats.accepted + stats.target_passes);
  } else {
    EXPECT_LE(stats.generated_tokens, 1 + stats.accepted + stats.target_passes);
  }
  EXPECT_LE(stats.accepted, stats.drafted);
  EXPECT_LE(stats.fallbacks, stats.target_passes);
  EXPECT_LE(stats.rollbacks, stats.target_passes);

  int64_t steps = 0;
  int64_t kept = 0;
  for (size_t i = 0; i < stats.lengths.size(); ++i) {
    steps += stats.lengths[i];
    kept += static_cast<int64_t>(i) * stats.lengths[i];
  }
  EXPECT_EQ(steps, stats.target_passes);
  EXPECT_EQ(kept, stats.accepted);

  int64_t drafted = 0;
  int64_t accepted = 0;
  int64_t drafted_before = stats.target_passes;
  int64_t accepted_before = stats.target_passes;
  for (const DepthStats& depth : stats.depths) {
    EXPECT_LE(depth.accepted, depth.drafted);
    EXPECT_LE(depth.drafted, drafted_before);
    EXPECT_LE(depth.accepted, accepted_before);
    drafted += depth.drafted;
    accepted += depth.accepted;
    drafted_before = depth.drafted;
    accepted_before = depth.accepted;
  }
  EXPECT_EQ(accepted, stats.accepted);
  const bool chain = recipe.plain() || (!recipe.planned && recipe.levels.front().breadth == 1);
  if (chain) {
    EXPECT_EQ(drafted, stats.drafted);
  } else {
    EXPECT_LE(drafted, stats.drafted);
  }

  if (recipe.planned) {
    int64_t planned = 0;
    for (const PlanStats& plan : stats.plans) planned += plan.steps;
    EXPECT_EQ(planned, stats.target_passes);
    int64_t draft_passes = 0;
    for (const LevelStats& level : stats.levels) {
      EXPECT_LE(level.accepted, level.drafted);
      draft_passes += level.passes;
    }
    EXPECT_EQ(draft_passes, stats.draft_passes);
    return;
  }
  ASSERT_EQ(stats.levels.size(), recipe.levels.size());
  int64_t passes = 0;
  double seconds_above = stats.seconds_draft;
  for (size_t i = 0; i < stats.levels.size(); ++i) {
    const LevelStats& level = stats.levels[i];
    EXPECT_LE(level.accepted, level.drafted) << "level " << i;
    EXPECT_LE(level.seconds, seconds_above) << "level " << i;
    if (level.drafted > 0) {
      EXPECT_GT(level.seconds, 0.0) << "level " << i;
    }
    if (recipe.levels[i].kind == DraftLevel::Kind::kNgram) {
      EXPECT_EQ(level.passes, 0);
    } else if (level.drafted > 0) {
      EXPECT_GT(level.passes, 0);
    }
    passes += level.passes;
    seconds_above = level.seconds;
  }
  EXPECT_EQ(passes, stats.draft_passes);
  if (!stats.levels.empty()) {
    EXPECT_EQ(stats.levels.front().drafted, stats.drafted);
    EXPECT_EQ(stats.levels.front().accepted, stats.accepted);
  }
}

}  // namespace verbatim::test
