#include <gtest/gtest.h>

#include "engine/model_access.h"
#include "speculation/stores.h"
#include "support/engine_support.h"
#include "support/packed.h"
#include "support/speculative_text.h"
#include "support/synthetic_model.h"
#include "support/test_recipes.h"

namespace verbatim {
namespace {

/// A tiny mixture of experts, of which each token takes three.
class FewerExperts : public testing::Test {
 protected:
  FewerExperts() {
    test::write_tiny_gguf(folder_.path() / "mixture.gguf", {.model_type = "mixtral",
                                                            .dtype = DType::kBF16,
                                                            .vocab_size = 260,
                                                            .byte_vocabulary = true,
                                                            .experts_used = 3});
  }

  Model load(const std::vector<std::string>& formats = {}) const {
    return Model::load(folder_.path() / "mixture.gguf", {.formats = formats, .threads = 1});
  }
  static Recipe drafting(const std::string& reading, int32_t experts, int32_t layers = 0) {
    DraftLevel level = test::self_level(reading, 4);
    level.experts = experts;
    level.layers = layers;
    return test::recipe_of("fewer", {level});
  }
  static Request request(const Model& model, const Recipe& recipe) {
    Request request{.prompt = model.encode("abcabcabc"), .options = {}, .recipe = recipe};
    request.options.max_tokens = 48;
    request.options.ignore_eos = true;
    return request;
  }
  static GenerateResult alone(const Model& model, const Recipe& recipe) {
    const Request asked = request(model, recipe);
    Session session(model, 96, 1);
    return session.generate(asked.prompt, asked.options, asked.recipe);
  }

  test::TemporaryFolder folder_;
};

TEST_F(FewerExperts, DraftForAllThatTheModelTakesAndAreSometimesWrong) {
  const Model model = load({"mxbf16"});
  const std::vector<int32_t> expected = alone(model, load_recipe("plain")).tokens;
  for (const Recipe& recipe :
       {drafting("full", 1), drafting("full", 2), drafting("mxbf16-draft", 1), drafting("full", 2, 1)}) {
    const GenerateResult result = alone(model, recipe);
    EXPECT_EQ(result.tokens, expected);
    const LevelStats& drafts = result.stats.levels.front();
    EXPECT_GT(drafts.drafted, 10) << recipe.levels.front().short_name();
    EXPECT_LT(drafts.accepted, drafts.drafted) << recipe.levels.front().short_name();
  }
}

// Passes that draft with other numbers of experts cannot be one pass.
TEST_F(FewerExperts, OfSeveralNumbersDraftInOneBatchAsTheyDoAlone) {
  const Model model = load();
  Engine engine(model, {.max_batch = 4, .capacity = 400, .weigh_drafts = false, .threads = 2});
  std::vector<TokenStream> streams;
  for (const int32_t experts : {1, 2, 1, 2})
    streams.push_back(engine.submit(request(model, drafting("full", experts))));
  const GenerateResult expected[] = {alone(model, drafting("full", 1)), alone(model, drafting("full", 2))};
  EXPECT_NE(expected[0].stats.levels.front().accepted, expected[1].stats.levels.front().accepted);
  for (size_t i = 0; i < streams.size(); ++i) {
    const GenerateResult& with_as_many = expected[i % 2];
    const GenerateResult result = streams[i].wait();
    EXPECT_EQ(result.tokens, with_as_many.tokens);
    EXPECT_EQ(result.stats.levels.front().drafted, with_as_many.stats.levels.front().drafted);
    EXPECT_EQ(result.stats.levels.front().accepted, with_as_many.stats.levels.front().accepted);
  }
}

TEST_F(FewerExperts, AreLeftOutByAPlannerWhereTheModelHasNoFewer) {
  const Model model = load({"mxbf16"});
  Recipe planned = test::recipe_of("planned", {test::ngram_level(4)});
  planned.planned = true;
  for (const int32_t experts : {2, 3}) {
    planned.levels.insert(planned.levels.begin(), drafting("mxbf16-draft", experts).levels.front());
  }
  const Recipe used = with_stores_of(planned, data_of(model).decoder, nullptr);
  ASSERT_EQ(used.levels.size(), 2u);
  EXPECT_EQ(used.levels.front().experts, 2);
  test::measure_apart();
  EXPECT_EQ(alone(model, planned).tokens, alone(model, load_recipe("plain")).tokens);
}

}  // namespace
}  // namespace verbatim
