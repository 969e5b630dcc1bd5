#include "support/batches.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT: the support of this very test

// 64 requests, 32 at once, in random order: every lossless recipe, with memory enough and with too little,
// with beginnings remembered and without.
class EngineRecipe : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(, EngineRecipe, testing::ValuesIn([] {
                           std::vector<std::string> names = {"plain"};
                           for (const Recipe& recipe : lossless_recipes()) {
                             if (recipe.cache.kind == CacheOptions::Kind::kBf16) names.push_back(recipe.name);
                           }
                           return names;
                         }()),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(EngineRecipe, AnswersSixtyFourRequestsAsItAnswersEachAlone) {
  static const std::vector<Asked> asked = many_requests(default_pair({"full"}).target, 64, 48);
  const Recipe recipe = load_recipe(GetParam());
  const Pair& pair = default_pair(recipe.formats());
  uint32_t seed = 1;
  int64_t preemptions = 0;
  const bool plain = recipe.plain();
  for (const int64_t positions : {0, 768}) {
    for (const bool prompt_cache : {false, true}) {
      if (!plain && prompt_cache == (positions == 0)) continue;  // each of them once
      BatchRun run{.max_batch = 32,
                   .cache_positions = positions,
                   .prompt_cache = prompt_cache,
                   .weigh_drafts = positions == 0,
                   .seed = seed++};
      expect_answers_alone(pair, asked, recipe, run);
      if (HasFatalFailure()) return;
      preemptions += run.stats.preemptions;
    }
    EXPECT_EQ(preemptions > 0, positions > 0);
  }
}

// Caches of codes belong to their sequences; what batches must not change is the same. Prompts that are there
// up to four times are longer than the buffer, which is emptied now and then.
TEST(EngineHierarchicalCache, AnswersSixtyFourRequestsAsItAnswersEachAlone) {
  Recipe plain = load_recipe("plain");
  plain.cache = {.kind = CacheOptions::Kind::kHierarchical, .group = 32, .buffer = 256};
  const Model& model = default_pair({"full"}).target;
  std::vector<Asked> asked = many_requests(model, 64, 48, plain);
  size_t longest = 0;
  for (size_t i = 0; i < asked.size(); ++i) {
    std::vector<int32_t>& prompt = asked[i].request.prompt;
    const std::vector<int32_t> once = prompt;
    for (size_t copy = 0; copy < i % 4 && prompt.size() + once.size() < 900; ++copy) {
      prompt.insert(prompt.end(), once.begin(), once.end());
    }
    longest = std::max(longest, prompt.size());
    asked[i].ask_alone(model, plain);
  }
  EXPECT_GT(longest, 600u);
  uint32_t seed = 20;
  for (const char* const name : {"plain", "quantspec", "quantspec-kv", "quantspec-weights"}) {
    Recipe recipe = load_recipe(name);
    recipe.cache = plain.cache;
    for (const bool prompt_cache : {false, true}) {
      BatchRun run{
          .max_batch = 32, .prompt_cache = prompt_cache, .weigh_drafts = prompt_cache, .seed = seed++};
      expect_answers_alone(default_pair(recipe.formats()), asked, recipe, run);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(EngineSoak, TwoThousandRequestsLeaveNothingBehind) {
  soak(2000);
}

}  // namespace
}  // namespace verbatim
