#include "drafting/sparse_levels.h"
#include "support/speculative_text.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT: the support of this very test

const Recipe kPlainRecipe = load_recipe("plain");

/// What a prompt is asked for with, differently from prompt to prompt.
Asking asking(size_t index) {
  const std::vector<SamplingOptions> sampling = various_sampling();
  constexpr int64_t kChunks[] = {512, 1, 7, 64};
  Asking asking{.sampling = sampling[index % sampling.size()]};
  asking.sampling.seed += index;
  asking.threads = static_cast<int32_t>(1 + index / 2 % 2);
  asking.prefill_chunk = kChunks[index / 3 % 4];
  return asking;
}

/// Whether what drafts is what verifies while the text is short: a sparse view leaves nothing out, and there
/// are no codes yet. sparse_drafts_slow_test.cpp and hierarchical_cache_slow_test.cpp have longer texts.
bool sees_all_of_short_texts(const DraftLevel& level) {
  const bool whole_model =
      level.kind == DraftLevel::Kind::kSelf && level.reading == "full" && level.layers == 0;
  return is_sparse(level) || (whole_model && level.cache == "draft");
}

/// Every recipe over the prompts, each of them asked in another way.
void expect_plain_texts(const std::vector<Recipe>& recipes, const std::vector<std::string>& prompts,
                        int64_t tokens, bool own_stores) {
  // Plain decoding in the weights as they are is the measure for all stores.
  const Pair& measure = default_pair({"full", "mxfp4", "int4"});
  std::vector<GenerateResult> plain;
  std::vector<Asking> asked;
  for (size_t i = 0; i < prompts.size(); ++i) {
    asked.push_back(asking(i));
    asked.back().tokens = tokens;
    plain.push_back(generate(measure, kPlainRecipe, measure.target.encode(prompts[i]), asked.back()));
  }
  for (const Recipe& recipe : recipes) {
    const Pair& pair = own_stores ? default_pair(recipe.formats()) : measure;
    Work work;
    for (size_t i = 0; i < prompts.size(); ++i) {
      expect_plain_text(pair, recipe, pair.target.encode(prompts[i]), asked[i], plain[i], work);
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_GT(work.accepted, 0) << recipe.name << ": a comparison without accepted drafts shows little";
    if (sees_all_of_short_texts(recipe.levels.front())) continue;
    EXPECT_LT(work.accepted, work.drafted) << recipe.name << ": nor does one without rejected drafts";
  }
}

TEST(RecipesOverRealPrompts, BuiltInOnesGiveThePlainText) {
  expect_plain_texts(lossless_recipes(), real_prompts(15, 220), 40, true);
}

TEST(RecipesOverRealPrompts, MadeOnesGiveThePlainText) {
  expect_plain_texts(made_recipes(2500), real_prompts(10, 160), 32, false);
}

/// Whether nodes were drafted beside each other: more of them than depths.
bool drafted_trees(const Stats& stats) {
  int64_t depths = 0;
  for (const DepthStats& depth : stats.depths) depths += depth.drafted;
  return stats.drafted > depths;
}

// The drafts of the first level as chains and as trees.
TEST(RecipesOverRealPrompts, BuiltInOnesGiveThePlainTextWithTreesAndWithout) {
  const Pair& measure = default_pair({"full"});
  const std::string prompt = real_prompts(1, 220).front();
  for (const float temperature : {0.0f, 0.7f}) {
    const Asking asking{.sampling = {.temperature = temperature, .seed = 4}, .tokens = 16, .threads = 2};
    const std::vector<int32_t> ids = measure.target.encode(prompt);
    const GenerateResult plain = generate(measure, kPlainRecipe, ids, asking);
    for (Recipe recipe : lossless_recipes()) {
      for (const int32_t breadth : {1, 3}) {
        DraftLevel& level = recipe.levels.front();
        level.breadth = breadth;
        level.nodes = breadth == 1 ? 0 : level.length + 12;
        const GenerateResult result = generate(default_pair(recipe.formats()), recipe, ids, asking);
        ASSERT_EQ(result.tokens, plain.tokens)
            << recipe.name << ", breadth " << breadth << ", temperature " << temperature;
        ASSERT_EQ(result.text, plain.text);
        expect_consistent(result.stats, recipe);
        // A planned recipe has trees of its own accord, or none.
        if (!recipe.planned) {
          EXPECT_EQ(drafted_trees(result.stats), breadth > 1) << recipe.name;
        }
      }
    }
  }
}

// Long enough for drafts to cross the borders of attention's chunks, and the model's own end of text.
TEST(RecipesOverRealPrompts, ReachTheModelsOwnEndAlike) {
  const Pair& measure = default_pair({"full"});
  int ended = 0;
  for (size_t i = 1; i < 20; i += 5) {  // questions of GSM8K
    const std::string prompt = real_prompts(20, 1000)[i];
    const std::vector<int32_t> ids = measure.target.encode(prompt);
    GenerateOptions options;
    options.max_tokens = 200;
    Session plain_session(measure.target, 0, 2);
    const GenerateResult plain = plain_session.generate(ids, options, kPlainRecipe);
    ended += plain.stats.finish == FinishReason::kEndOfSequence ? 1 : 0;
    for (const Recipe& recipe : lossless_recipes()) {
      const Pair& pair = default_pair(recipe.formats());
      Session session(pair.target, 0, 2);
      session.set_draft_model(pair.draft);
      const GenerateResult result = session.generate(ids, options, recipe);
      ASSERT_EQ(result.tokens, plain.tokens) << recipe.name << "\n" << prompt;
      EXPECT_EQ(result.text, plain.text);
      EXPECT_EQ(result.stats.finish, plain.stats.finish);
    }
  }
  EXPECT_GT(ended, 0) << "no text reached its end";
}

class RecipesOnPaths : public testing::TestWithParam<MachinePath> {
 protected:
  SelectedKernels selected_{*GetParam().table};
};

INSTANTIATE_TEST_SUITE_P(, RecipesOnPaths, testing::ValuesIn(machine_paths()),
                         [](const auto& info) { return path_name(info); });

TEST_P(RecipesOnPaths, GiveThePlainTextOfRealPrompts) {
  const bool slow = GetParam().name == "scalar";
  const std::vector<std::string> prompts = real_prompts(slow ? 1 : 4, slow ? 30 : 120);
  std::vector<Recipe> recipes = made_recipes(2500);
  if (slow) {
    recipes = {recipes[7], recipes[9]};
  }
  expect_plain_texts(recipes, prompts, slow ? 6 : 20, false);
  if (!slow) expect_plain_texts(lossless_recipes(), prompts, 20, true);
}

}  // namespace
}  // namespace verbatim
