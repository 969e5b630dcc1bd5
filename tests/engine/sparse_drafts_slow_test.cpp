#include "support/speculative_text.h"
#include "verbatim/error.h"

namespace verbatim {
namespace sparse_drafts_slow_test {
namespace {

using namespace test;  // NOLINT: the support of this very test

// Drafts that see a part of the past: streamingllm and snapkv, over prompts that are long enough for them to
// leave most of it out.

const Recipe kPlainRecipe = load_recipe("plain");

/// A prompt of so many tokens: real ones in a row, without the first `skipped`.
std::vector<int32_t> long_prompt(const Model& model, size_t tokens, size_t skipped = 0) {
  const std::vector<std::string> prompts = real_prompts(30, 1000);
  std::string text;
  for (size_t i = skipped; i < prompts.size(); ++i) text += prompts[i] + "\n\n";
  std::vector<int32_t> ids = model.encode(text);
  EXPECT_GE(ids.size(), tokens);
  ids.resize(tokens);
  return ids;
}

Recipe with_length(const std::string& name, int32_t length) {
  Recipe recipe = load_recipe(name);
  recipe.levels.front().length = length;
  return recipe;
}

class SparseDrafts : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(, SparseDrafts, testing::Values("streamingllm", "snapkv"),
                         [](const auto& info) { return info.param; });

TEST_P(SparseDrafts, GiveThePlainText) {
  const Pair& pair = default_pair({"full"});
  Work work;
  for (const size_t skipped : {6, 11}) {
    const std::vector<int32_t> prompt = long_prompt(pair.target, 600 + 10 * skipped, skipped);
    for (const float temperature : {0.0f, 0.8f}) {
      Asking asking{.sampling = {.temperature = temperature, .seed = 5 + skipped}, .tokens = 40};
      const GenerateResult plain = generate(pair, kPlainRecipe, prompt, asking);
      for (const int32_t length : {1, 2, 5}) {
        asking.threads = 3 - asking.threads;
        asking.prefill_chunk = length == 1 ? 512 : 37;
        expect_plain_text(pair, with_length(GetParam(), length), prompt, asking, plain, work);
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(work.accepted, 0);
  EXPECT_LT(work.accepted, work.drafted) << "the drafts see all there is";
}

// Also inside other drafts, with others inside them, as trees, and from other weights.
TEST_P(SparseDrafts, GiveThePlainTextInOtherCompany) {
  const Pair& pair = default_pair({"full", "mxfp4"});
  const std::vector<int32_t> prompt = long_prompt(pair.target, 500, 6);
  const Asking asking{.sampling = {.temperature = 0.8f, .seed = 6}, .tokens = 40, .threads = 2};
  const GenerateResult plain = generate(pair, kPlainRecipe, prompt, asking);
  DraftLevel sparse = load_recipe(GetParam()).levels.front();
  sparse.length = 5;
  DraftLevel tree = sparse;
  tree.breadth = 3;
  tree.nodes = 12;
  DraftLevel four_bits = sparse;
  four_bits.reading = "mxfp4-w4a8";
  DraftLevel early = sparse;
  early.layers = 5;
  Work work;
  for (const Recipe& recipe :
       {recipe_of("tree", {tree}), recipe_of("four_bits", {four_bits}), recipe_of("early", {early}),
        recipe_of("outer", {sparse, ngram_level(4, 2, 8)}),
        recipe_of("inner", {self_level("mxfp4-w4a16", 8), four_bits})}) {
    expect_plain_text(pair, recipe, prompt, asking, plain, work);
    if (HasFatalFailure()) return;
  }
  Recipe f16 = load_recipe(GetParam());
  f16.cache.kind = CacheOptions::Kind::kF16;
  Recipe plain_f16 = kPlainRecipe;
  plain_f16.cache = f16.cache;
  expect_plain_text(pair, f16, prompt, asking, generate(pair, plain_f16, prompt, asking), work);
  EXPECT_LT(work.accepted, work.drafted);
}

// A chat: prompts that follow each other in one session, one of them taken back.
TEST_P(SparseDrafts, GiveThePlainTextPromptAfterPrompt) {
  const Pair& pair = default_pair({"full"});
  const std::vector<int32_t> text = long_prompt(pair.target, 800);
  const auto part = [&](int64_t begin, int64_t end) {
    return std::vector<int32_t>(text.begin() + begin, text.begin() + end);
  };
  const GenerateOptions options =
      options_of({.sampling = {.temperature = 0.8f, .seed = 7}, .tokens = 30, .threads = 2});
  const auto talk = [&](const Recipe& recipe) {
    Session session(pair.target, 1000, 2);
    std::vector<std::vector<int32_t>> said;
    const auto say = [&](const std::vector<int32_t>& prompt) {
      said.push_back(session.generate(prompt, options, recipe).tokens);
    };
    say(part(0, 300));
    say(part(300, 320));
    say(part(320, 600));
    session.truncate(290);
    say(part(600, 650));
    session.truncate(340);
    say(part(650, 800));
    return said;
  };
  EXPECT_EQ(talk(with_length(GetParam(), 3)), talk(kPlainRecipe));
}

// The same drafts for every number of threads: what is chosen does not depend on it.
TEST_P(SparseDrafts, AreTheSameForEveryNumberOfThreads) {
  const Pair& pair = default_pair({"full"});
  const std::vector<int32_t> prompt = long_prompt(pair.target, 640, 6);
  Asking asking{.sampling = {}, .tokens = 40};
  const Recipe recipe = with_length(GetParam(), 3);
  const GenerateResult one = generate(pair, recipe, prompt, asking);
  asking.threads = 3;
  const GenerateResult three = generate(pair, recipe, prompt, asking);
  EXPECT_EQ(three.stats.drafted, one.stats.drafted);
  EXPECT_EQ(three.stats.accepted, one.stats.accepted);
}

TEST_P(SparseDrafts, OfACacheOfCodesAreRefused) {
  const Pair& pair = default_pair({"full"});
  Recipe recipe = load_recipe(GetParam());
  recipe.cache.kind = CacheOptions::Kind::kHierarchical;
  try {
    generate(pair, recipe, {1, 2, 3}, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
    EXPECT_NE(std::string(error.what()).find("bf16 or f16"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace sparse_drafts_slow_test
}  // namespace verbatim
