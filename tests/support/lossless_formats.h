#pragma once

#include <gtest/gtest.h>

#include <map>

#include "support/engine_support.h"
#include "support/machine_paths.h"
#include "support/test_data.h"

// The promise for stores: a model says the same bytes from `bsfp` and `mxbf16` as from `bf16`, plain or with
// drafts from the store itself.

namespace verbatim::test {

/// A way to hold the default model's weights and to decode with them.
struct StoreRecipe {
  std::string format;
  std::string draft_reading;  // empty: plain
};
inline const StoreRecipe kStoreRecipes[] = {
    {"bsfp", ""}, {"mxbf16", ""}, {"bsfp", "bsfp-draft"}, {"mxbf16", "mxbf16-draft"}};

inline const Model& model_in(const std::string& format) {
  static std::map<std::string, Model> models;
  const auto found = models.find(format);
  if (found != models.end()) return found->second;
  return models.emplace(format, load_model(default_model(), {format})).first->second;
}

/// What a model says from a store, with what the recipe's drafts say on the way.
inline GenerateResult generate_from(const Model& model, const StoreRecipe& store,
                                    const std::vector<int32_t>& prompt, float temperature, int64_t tokens,
                                    int threads) {
  Recipe recipe = load_recipe("plain");
  if (!store.draft_reading.empty()) {
    recipe = parse_recipe(
        "name = \"x\"\nsummary = \"x\"\nsource = \"x\"\n[drafter]\nkind = \"self\"\nreading = \"" +
            store.draft_reading + "\"\n[drafter.stop]\nlength = 5\n",
        "the test's recipe");
    EXPECT_EQ(recipe.formats(), std::vector<std::string>{store.format});
  }
  GenerateOptions options;
  options.sampling.temperature = temperature;
  options.sampling.seed = 7;
  options.max_tokens = tokens;
  options.ignore_eos = true;
  Session session(model, static_cast<int64_t>(prompt.size()) + tokens, threads);
  return session.generate(prompt, options, recipe);
}

inline GenerateResult generate_in(const StoreRecipe& store, const std::string& prompt, float temperature,
                                  int64_t tokens, int threads) {
  const Model& model = model_in(store.format);
  return generate_from(model, store, model.encode(prompt), temperature, tokens, threads);
}

/// One store recipe against what plain decoding in BF16 said.
inline void expect_same_text(const StoreRecipe& store, const std::string& prompt, float temperature,
                             int64_t tokens, int threads, const GenerateResult& expected) {
  const GenerateResult result = generate_in(store, prompt, temperature, tokens, threads);
  ASSERT_EQ(result.tokens, expected.tokens)
      << store.format << " " << store.draft_reading << ", " << threads << " threads\nprompt: " << prompt;
  ASSERT_EQ(result.text, expected.text);
  if (!store.draft_reading.empty()) {
    EXPECT_GT(result.stats.drafted, 0);
    EXPECT_GT(result.stats.accepted, 0);
  }
}

/// All the store recipes against plain decoding in BF16.
inline void expect_the_text_of_bf16(const std::string& prompt, float temperature, int64_t tokens) {
  const GenerateResult expected = generate_in({"bf16", ""}, prompt, temperature, tokens, 2);
  ASSERT_EQ(expected.tokens.size(), static_cast<size_t>(tokens));
  for (const StoreRecipe& store : kStoreRecipes) {
    for (const int threads : {1, 2}) {
      expect_same_text(store, prompt, temperature, tokens, threads, expected);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

class LosslessFormats : public testing::TestWithParam<std::tuple<MachinePath, float>> {
 protected:
  SelectedKernels selected_{*std::get<0>(GetParam()).table};
  bool slow_ = std::get<0>(GetParam()).name == "scalar";
  float temperature_ = std::get<1>(GetParam());
};

inline std::string lossless_parameter_name(
    const testing::TestParamInfo<std::tuple<MachinePath, float>>& info) {
  return std::get<0>(info.param).name + (std::get<1>(info.param) > 0 ? "_sampled" : "_greedy");
}

}  // namespace verbatim::test
