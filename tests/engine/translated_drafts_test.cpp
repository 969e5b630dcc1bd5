#include <gtest/gtest.h>

#include "support/engine_support.h"
#include "support/other_vocabulary.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

// Draft models of another vocabulary: never another byte, and good drafts where the models are alike.

namespace verbatim {
namespace {

namespace fs = std::filesystem;

fs::path little() {
  return test::draft_model();
}

fs::path story() {
  return test::public_data() / "models" / "stories260K" / "stories260K-f32.gguf";
}

fs::path llama2() {
  return test::public_data() / "tokenizers" / "llama-2";
}

const std::vector<std::string>& prompts() {
  static const std::vector<std::string> all = {
      "def fibonacci(n):\n    \"\"\"",
      "Natalia sold clips to 48 of her friends in April, and then ",
      "Les élèves français déjà à l'été, naïve café: ",
      "日本語のテキスト。今日は天気がいい",
      "x = '😀😀'  # ",
      "\n\n\t",
      "a",
  };
  return all;
}

Recipe chain(int32_t length = 8, float threshold = 0.0f) {
  Recipe recipe = load_recipe("draft-model");
  recipe.levels.front().length = length;
  recipe.levels.front().threshold = threshold;
  return recipe;
}

GenerateOptions options(float temperature, int64_t tokens) {
  GenerateOptions options;
  options.sampling.temperature = temperature;
  options.sampling.seed = 5;
  options.max_tokens = tokens;
  options.ignore_eos = true;
  return options;
}

/// Compares the recipe with plain decoding on one prompt and returns its statistics.
Stats expect_plain_text(const Model& model, const Model& draft, const Recipe& recipe,
                        const std::vector<int32_t>& prompt, const GenerateOptions& options) {
  Session plain(model, 0, 1);
  Session drafted(model, 0, 2);
  drafted.set_draft_model(draft);
  const GenerateResult expected = plain.generate(prompt, options, load_recipe("plain"));
  const GenerateResult result = drafted.generate(prompt, options, recipe);
  EXPECT_EQ(result.tokens, expected.tokens) << model.decode(prompt);
  EXPECT_EQ(result.text, expected.text);
  EXPECT_EQ(result.stats.generated_tokens, 1 + result.stats.accepted + result.stats.target_passes);
  return result.stats;
}

/// Likewise on all prompts, at two temperatures. Returns the statistics of each, summed.
std::array<Stats, 2> expect_plain_texts(const Model& model, const Model& draft, const Recipe& recipe,
                                        int64_t tokens = 40) {
  std::array<Stats, 2> sums;
  for (size_t i = 0; i < 2; ++i) {
    for (const std::string& prompt : prompts()) {
      const Stats stats = expect_plain_text(model, draft, recipe, model.encode(prompt),
                                            options(i == 0 ? 0.0f : 0.8f, tokens));
      sums[i].drafted += stats.drafted;
      sums[i].accepted += stats.accepted;
    }
  }
  return sums;
}

class TranslatedDrafts : public testing::Test {
 protected:
  Model with_vocabulary(const fs::path& model, size_t longer_pieces) {
    const fs::path folder = folder_.path() / std::to_string(++folders_);
    test::write_with_vocabulary(model, test::shuffled_vocabulary(model, longer_pieces, 3), folder);
    return test::load_model(folder);
  }
  Model with_llama2_vocabulary() {
    const fs::path folder = folder_.path() / std::to_string(++folders_);
    test::write_onto_vocabulary(little(), llama2(), folder);
    return test::load_model(folder);
  }
  /// A model of random weights with a real vocabulary and rows to spare.
  Model random_model(const fs::path& tokenizer, int32_t rows, uint32_t seed) {
    const fs::path folder = folder_.path() / std::to_string(++folders_);
    test::TinyModelOptions options;
    options.hidden_size = 32;
    options.intermediate_size = 64;
    options.heads = 1;
    options.kv_heads = 1;
    options.layers = 1;
    options.vocab_size = rows;
    options.seed = seed;
    test::write_tiny_llama(folder, options);
    test::copy_tokenizer(tokenizer, folder);
    return test::load_model(folder);
  }

 private:
  test::TemporaryFolder folder_;
  int folders_ = 0;
};

TEST_F(TranslatedDrafts, OfTheModelItselfWithItsTokensRenumberedAreAllKept) {
  const Model model = test::load_model(little());
  const Model renumbered = with_vocabulary(little(), 1 << 20);
  const auto [greedy, sampled] = expect_plain_texts(model, renumbered, chain());
  EXPECT_GT(greedy.drafted, 200);
  EXPECT_GE(static_cast<double>(greedy.accepted), 0.99 * static_cast<double>(greedy.drafted));
  EXPECT_GT(static_cast<double>(sampled.accepted), 0.1 * static_cast<double>(sampled.drafted));
}

// The draft spells with shorter pieces, so that its tokens and the model's end at different places.
TEST_F(TranslatedDrafts, OfTheModelItselfWithFewerTokensAreKeptOften) {
  const Model model = test::load_model(little());
  const Model fewer = with_vocabulary(little(), 1000);
  ASSERT_LT(fewer.vocab_size(), model.vocab_size() / 2);
  const auto greedy = expect_plain_texts(model, fewer, chain())[0];
  EXPECT_GT(static_cast<double>(greedy.accepted), 0.2 * static_cast<double>(greedy.drafted));
  expect_plain_texts(model, fewer, chain(3, 0.4f), 20);
  // And the other way round.
  const auto reversed = expect_plain_texts(fewer, model, chain())[0];
  EXPECT_GT(static_cast<double>(reversed.accepted), 0.2 * static_cast<double>(reversed.drafted));
}

class PublicTranslatedDrafts : public TranslatedDrafts {
 protected:
  void SetUp() override { NEEDS_PUBLIC_DATA(); }
};

TEST_F(PublicTranslatedDrafts, OfAModelThatSpeaksAnotherLanguageDoNoHarm) {
  const Model model = test::load_model(little());
  const Model stories = test::load_model(story());
  const Model other_stories =
      test::load_model(test::public_data() / "models" / "llama2xs" / "llama2xs-f32.gguf");
  EXPECT_GT(expect_plain_texts(model, stories, chain())[0].drafted, 0);
  EXPECT_GT(expect_plain_texts(stories, model, chain())[0].drafted, 0);
  // These have one vocabulary.
  EXPECT_GT(expect_plain_texts(stories, other_stories, chain())[0].accepted, 0);
}

TEST_F(TranslatedDrafts, OfNonsenseDoNoHarm) {
  const Model model = test::load_model(little());
  const std::vector<int32_t> ids = test::shuffled_vocabulary(little(), 1500, 9);
  const test::TemporaryFolder other;
  test::write_with_vocabulary(little(), ids, other.path());
  const Model nonsense = random_model(other.path(), static_cast<int32_t>(ids.size()), 1);
  EXPECT_GT(expect_plain_texts(model, nonsense, chain())[0].drafted, 0);
  expect_plain_texts(nonsense, model, chain());
}

TEST_F(PublicTranslatedDrafts, OfNonsenseInALargeVocabularyDoNoHarm) {
  const Model model = test::load_model(little());
  const Model nonsense = random_model(llama2(), 32000, 1);
  EXPECT_GT(expect_plain_texts(model, nonsense, chain())[0].drafted, 0);
  expect_plain_texts(nonsense, model, chain());
}

TEST_F(TranslatedDrafts, ServeTheDefaultModel) {
  const Model model = test::load_model(test::default_model());
  const Model draft = with_vocabulary(little(), 1000);
  for (const float temperature : {0.0f, 0.8f}) {
    const Stats stats =
        expect_plain_text(model, draft, chain(), model.encode(prompts()[0]), options(temperature, 40));
    EXPECT_GT(stats.accepted, 0);
  }
}

// A trained model that speaks with the pieces of llama-2's 32000 that are among its own 4096, on either side.
TEST_F(PublicTranslatedDrafts, FromAndToTheVocabularyOfLlama2ArePartlyKept) {
  const Model with_llama2 = with_llama2_vocabulary();
  ASSERT_EQ(with_llama2.vocab_size(), 32000);
  const Model target = test::load_model(test::default_model());
  const Model little_draft = test::load_model(little());
  for (const float temperature : {0.0f, 0.7f, 1.2f}) {
    SCOPED_TRACE(temperature);
    const auto expect_some_kept = [&](const Model& model, const Model& draft, const std::string& prompt) {
      const Stats stats =
          expect_plain_text(model, draft, chain(), model.encode(prompt), options(temperature, 32));
      EXPECT_GT(stats.accepted, 0) << prompt;
    };
    expect_some_kept(target, with_llama2, prompts()[0]);
    expect_some_kept(with_llama2, little_draft, prompts()[1]);
  }
}

TEST_F(TranslatedDrafts, MayDraftForAnotherDrafter) {
  const Model model = test::load_model(little());
  const Model fewer = with_vocabulary(little(), 1000);
  const Recipe two_levels = load_recipe("ml-specqd-2");
  for (const Model& draft : {fewer, with_vocabulary(little(), 1 << 20)}) {
    for (const float temperature : {0.0f, 0.8f}) {
      const Stats stats =
          expect_plain_text(model, draft, two_levels, model.encode(prompts()[0]), options(temperature, 60));
      ASSERT_EQ(stats.levels.size(), 2u);
      EXPECT_GT(stats.accepted, 0);
      EXPECT_GT(stats.levels[1].passes, 0);
    }
  }
}

TEST_F(TranslatedDrafts, AreForThePlannerToUse) {
  const Model model = test::load_model(little(), {"full", "mxbf16"});
  const Model fewer = with_vocabulary(little(), 1000);
  const Recipe planned = load_recipe("auto");
  for (const float temperature : {0.0f, 0.8f}) {
    expect_plain_text(model, fewer, planned, model.encode(prompts()[0]), options(temperature, 100));
  }
}

// Longer than the draft model's context, which has 256 positions and shorter tokens.
TEST_F(PublicTranslatedDrafts, GoOnBeyondTheDraftModelsContext) {
  const Model model = test::load_model(little());
  const Model stories = test::load_model(test::public_data() / "models" / "llama2xs" / "llama2xs-f32.gguf");
  std::string text;
  for (const std::string& prompt : test::real_prompts(10, 400)) text += prompt + "\n\n";
  std::vector<int32_t> prompt = model.encode(text);
  ASSERT_GT(prompt.size(), 600u);
  prompt.resize(600);
  const Stats stats = expect_plain_text(model, stories, chain(), prompt, options(0.0f, 300));
  EXPECT_GT(stats.drafted, 200);
}

TEST_F(TranslatedDrafts, FollowASessionThroughSeveralTurns) {
  const Model model = test::load_model(little());
  const Model renumbered = with_vocabulary(little(), 1 << 20);
  Session plain(model, 0, 1);
  Session drafted(model, 0, 1);
  drafted.set_draft_model(renumbered);
  for (const std::string& prompt : prompts()) {
    const std::vector<int32_t> tokens = model.encode(prompt, plain.tokens().empty());
    const auto expected = plain.generate(tokens, options(0.0f, 20), load_recipe("plain"));
    const auto result = drafted.generate(tokens, options(0.0f, 20), chain());
    EXPECT_EQ(result.tokens, expected.tokens);
    EXPECT_GT(result.stats.accepted, 0);
    for (Session* session : {&plain, &drafted}) {
      session->truncate(static_cast<int64_t>(session->tokens().size()) - 7);
    }
  }
}

TEST_F(TranslatedDrafts, AlsoFollowTheLossyAndTheRandomRules) {
  const Model model = test::load_model(little());
  const Model fewer = with_vocabulary(little(), 1000);
  for (const Recipe::Acceptance acceptance : {Recipe::Acceptance::kRejection, Recipe::Acceptance::kBild}) {
    Recipe recipe = chain(4, 0.3f);
    recipe.levels.front().breadth = 1;
    recipe.levels.front().nodes = 0;
    recipe.acceptance = acceptance;
    recipe.rollback = 3.0f;
    Session session(model, 0, 1);
    session.set_draft_model(fewer);
    const auto result = session.generate(model.encode(prompts()[0]), options(0.8f, 40), recipe);
    EXPECT_EQ(result.tokens.size(), 40u);
    EXPECT_GT(result.stats.accepted, 0);
  }
}

// Models round their vocabularies up, not always to the same size.
TEST_F(TranslatedDrafts, AreNotNeededWhereOnlyThePaddingDiffers) {
  const Model model = random_model(little(), 4096, 1);
  const Model padded = random_model(little(), 4160, 2);
  const auto draft_more = expect_plain_texts(model, padded, chain());
  const auto draft_fewer = expect_plain_texts(padded, model, chain());
  EXPECT_GT(draft_more[0].drafted, 0);
  EXPECT_GT(draft_fewer[0].drafted, 0);
}

void expect_usage_error(const Model& model, const Model& draft, const Recipe& recipe,
                        const std::string& part) {
  Session session(model, 0, 1);
  session.set_draft_model(draft);
  try {
    session.generate(model.encode("a"), options(0.0f, 4), recipe);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST_F(TranslatedDrafts, CannotHaveADrafterInside) {
  const Model model = test::load_model(little());
  Recipe recipe = chain();
  DraftLevel ngram;
  ngram.kind = DraftLevel::Kind::kNgram;
  recipe.levels.push_back(ngram);
  expect_usage_error(model, with_vocabulary(little(), 1000), recipe, "another vocabulary");
}

TEST_F(TranslatedDrafts, NeedBothTokenizers) {
  const Model model = test::load_model(little());
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "silent");
  expect_usage_error(model, test::load_model(folder.path() / "silent"), chain(), "no tokenizer");
}

}  // namespace
}  // namespace verbatim
