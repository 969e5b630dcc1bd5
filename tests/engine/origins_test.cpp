#include <gtest/gtest.h>

#include "support/byte_model.h"
#include "support/packed.h"

namespace verbatim {
namespace origins_test {
namespace {

using Kind = TokenOrigin::Kind;

GenerateOptions asking(const SamplingOptions& sampling, int64_t tokens) {
  GenerateOptions options;
  options.sampling = sampling;
  options.max_tokens = tokens;
  options.ignore_eos = true;
  options.origins = true;
  return options;
}

GenerateResult generated(const Recipe& recipe, const GenerateOptions& options) {
  const test::Pair& pair = test::byte_pair();
  Session session(pair.target, 128, 1);
  session.set_draft_model(pair.draft);
  return session.generate(pair.target.encode("abcabc"), options, recipe);
}

int64_t count(const std::vector<TokenOrigin>& origins, Kind kind) {
  return std::count_if(origins.begin(), origins.end(),
                       [&](const TokenOrigin& origin) { return origin.kind == kind; });
}

TEST(Origins, AgreeWithTheStatisticsOfEveryRecipe) {
  for (const SamplingOptions& sampling :
       {SamplingOptions{}, SamplingOptions{.temperature = 0.7f, .seed = 1}}) {
    for (const Recipe& recipe : test::byte_recipes()) {
      SCOPED_TRACE(recipe.name);
      const GenerateResult result = generated(recipe, asking(sampling, 48));
      ASSERT_EQ(result.origins.size(), result.tokens.size());
      EXPECT_EQ(count(result.origins, Kind::kDrafted), result.stats.accepted);
      EXPECT_EQ(count(result.origins, Kind::kCorrected), result.stats.rollbacks);
      EXPECT_EQ(result.origins.front(), TokenOrigin{});  // the prompt's pass gave it
      for (const TokenOrigin& origin : result.origins) {
        if (origin.kind == Kind::kPlain) {
          EXPECT_EQ(origin, TokenOrigin{});
        } else {
          EXPECT_GE(origin.level, 0);
          EXPECT_LT(origin.level, std::ssize(result.stats.levels));
          EXPECT_GE(origin.confidence, 0.0f);
          EXPECT_LE(origin.confidence, 1.0f);
        }
      }
    }
  }
}

TEST(Origins, NameTheLevelThatHadTheTokenFirst) {
  const Recipe nested = test::recipe_of("nested", {test::self_level("mxfp4-w4a8", 8), test::ngram_level(4)});
  // Reading the same weights, the outer level is always right, and the inner one where the text repeats
  // itself.
  GenerateOptions options = asking({}, 100);
  const int32_t a = test::kFirstByte + 'a';
  const int32_t b = test::kFirstByte + 'b';
  options.filter = [&](std::span<const int32_t> said, std::span<uint8_t> allowed) {
    std::fill(allowed.begin(), allowed.end(), 0);
    allowed[static_cast<size_t>(said.size() % 2 == 0 ? a : b)] = 1;
  };
  const GenerateResult result = generated(nested, options);
  const auto of_level = [&](int32_t level) {
    return std::count_if(result.origins.begin(), result.origins.end(),
                         [&](const TokenOrigin& origin) { return origin.level == level; });
  };
  EXPECT_EQ(of_level(0) + of_level(1), result.stats.accepted);
  EXPECT_GT(of_level(1), 50);
  EXPECT_GT(of_level(0), 0);
}

TEST(Origins, AreLeftOutUnlessAskedFor) {
  GenerateOptions options = asking({}, 8);
  options.origins = false;
  EXPECT_TRUE(generated(test::made_recipes(100)[0], options).origins.empty());
}

TEST(Origins, ComeWithThePiecesOfAStreamAndEndWithTheText) {
  const Model& model = test::byte_pair().target;
  Engine engine(model, {.max_batch = 2, .capacity = 64, .threads = 1});
  const Recipe recipe = test::recipe_of("self", {test::self_level("mxfp4-w4a8", 4)});
  GenerateOptions options = asking({}, 24);
  TokenStream stream = engine.submit({model.encode("abcabc"), options, recipe});
  std::vector<TokenOrigin> streamed;
  while (const auto piece = stream.next()) {
    ASSERT_EQ(piece->origins.size(), piece->tokens.size());
    streamed.insert(streamed.end(), piece->origins.begin(), piece->origins.end());
  }
  const GenerateResult whole = stream.wait();
  EXPECT_EQ(streamed, whole.origins);
  EXPECT_EQ(whole.origins.size(), whole.tokens.size());

  options.stop_tokens = {whole.tokens[6]};
  const GenerateResult cut = engine.generate({model.encode("abcabc"), options, recipe});
  EXPECT_EQ(cut.origins.size(), cut.tokens.size());
  EXPECT_LE(cut.tokens.size(), 7u);
}

TEST(AdaptedRecipe, HasTheLevelsThatTheModelHasWeightsFor) {
  const test::Pair& pair = test::byte_pair();
  Engine engine(pair.target, {.max_batch = 1, .capacity = 64, .threads = 1});
  Recipe planned = test::recipe_of(
      "planned", {test::self_level("mxfp4-w4a8", 4), test::model_level("full", 4), test::ngram_level(4)});
  planned.planned = true;
  std::vector<std::string> names;
  for (const DraftLevel& level : engine.adapted(planned).levels) names.push_back(level.short_name());
  EXPECT_EQ(names, (std::vector<std::string>{"self@mxfp4-w4a8", "ngram"}));  // there is no draft model
  planned.levels.clear();
  planned.acceptance = Recipe::Acceptance::kBild;
  planned.rollback = -1.0f;
  EXPECT_THROW(engine.adapted(planned), Error);
}

TEST(AdaptedRecipe, LevelsHaveShortNames) {
  DraftLevel level = test::self_level("mxfp4-w4a8", 4);
  level.layers = 3;
  EXPECT_EQ(level.short_name(), "self@mxfp4-w4a8/3");
  level.experts = 1;
  EXPECT_EQ(level.short_name(), "self@mxfp4-w4a8/3+1");
  EXPECT_EQ(test::model_level("", 4).short_name(), "model@full");
}

}  // namespace
}  // namespace origins_test
}  // namespace verbatim
