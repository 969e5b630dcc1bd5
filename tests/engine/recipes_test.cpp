#include "support/speculative_text.h"

namespace verbatim {
namespace recipes_test {
namespace {

using namespace test;  // NOLINT: the support of this very test

const Recipe kPlainRecipe = load_recipe("plain");

class Recipes : public testing::TestWithParam<MachinePath> {
 protected:
  SelectedKernels selected_{*GetParam().table};
};

INSTANTIATE_TEST_SUITE_P(, Recipes, testing::ValuesIn(machine_paths()),
                         [](const auto& info) { return path_name(info); });

// Drafters in drafters, trees, reduced vocabularies: all that a recipe can say, with a small model.
TEST_P(Recipes, OfEveryMakeGiveThePlainTextOfASmallModel) {
  LOWER_PATHS_TOO_LONG_FOR_SANITIZERS(GetParam().name);
  const bool scalar = GetParam().name == "scalar";
  const bool all = GetParam().name == machine_paths().back().name;
  const Pair& pair = small_pair();
  const std::vector<int32_t> prompt =
      pair.target.encode("for i in range(10):\n    total += i\nfor i in range(10):\n    total +=");
  const std::vector<SamplingOptions> sampling = various_sampling();
  for (size_t s = 0; s < sampling.size(); s += all ? 1 : 3) {
    Asking asking{.sampling = sampling[s], .tokens = scalar ? 20 : 48};
    const GenerateResult plain = generate(pair, kPlainRecipe, prompt, asking);
    ASSERT_EQ(plain.tokens.size(), static_cast<size_t>(asking.tokens));
    expect_consistent(plain.stats, kPlainRecipe);
    for (const Recipe& recipe : made_recipes(pair.target.vocab_size() * 7 / 8)) {
      asking.threads = 3 - asking.threads;
      asking.prefill_chunk = asking.threads == 1 ? 512 : 5;
      Work work;
      expect_plain_text(pair, recipe, prompt, asking, plain, work);
      if (HasFatalFailure()) return;
      EXPECT_GT(work.drafted, 0) << recipe.name;
      if (s == 0) {
        EXPECT_GT(work.accepted, 0) << recipe.name;
      }
    }
  }
}

class BuiltInRecipe : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(, BuiltInRecipe, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const Recipe& recipe : lossless_recipes()) names.push_back(recipe.name);
                           return names;
                         }()),
                         [](const auto& info) { return test_name(info.param); });

// In the store that the recipe asks for, with the plain text of the weights as they are.
TEST_P(BuiltInRecipe, GivesThePlainTextOfTheDefaultModel) {
  const Recipe recipe = load_recipe(GetParam());
  const Pair& bf16 = default_pair({"full"});
  const Pair& pair = default_pair(recipe.formats());
  const std::vector<int32_t> prompt = pair.target.encode("def fibonacci(n):\n    \"\"\"");
  Work work;
  for (const float temperature : {0.0f, 0.7f, 1.2f}) {
    const Asking asking{.sampling = {.temperature = temperature, .seed = 11}, .tokens = 24, .threads = 2};
    const GenerateResult plain = generate(bf16, kPlainRecipe, prompt, asking);
    expect_plain_text(pair, recipe, prompt, asking, plain, work);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(work.accepted, 0);
}

}  // namespace
}  // namespace recipes_test
}  // namespace verbatim
