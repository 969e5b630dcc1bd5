#include <gtest/gtest.h>

#include <limits>

#include "support/byte_model.h"

namespace verbatim {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

GenerateResult generated(const Recipe& recipe, const GenerateOptions& options) {
  const test::Pair& pair = test::byte_pair();
  Session session(pair.target, 64, 1);
  session.set_draft_model(pair.draft);
  return session.generate(pair.target.encode("abcabc"), options, recipe);
}

GenerateOptions asking(const SamplingOptions& sampling) {
  GenerateOptions options;
  options.sampling = sampling;
  options.max_tokens = 24;
  options.ignore_eos = true;
  return options;
}

/// A number, a comma, a number of one digit more, and so on: what may come depends on all tokens so far.
bool fits(std::span<const int32_t> generated, int32_t token) {
  size_t digits = 0;
  size_t wanted = 1;
  for (const int32_t each : generated) {
    const bool digit = each >= test::kFirstByte + '0' && each <= test::kFirstByte + '9';
    digits = digit ? digits + 1 : 0;
    if (!digit) ++wanted;
  }
  if (digits < wanted) return token >= test::kFirstByte + '0' && token <= test::kFirstByte + '9';
  return token == test::kFirstByte + ',';
}

void numbers(std::span<const int32_t> generated, std::span<uint8_t> allowed) {
  for (size_t t = 0; t < allowed.size(); ++t) allowed[t] = fits(generated, static_cast<int32_t>(t));
}

void expect_numbers(const std::vector<int32_t>& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_TRUE(fits(std::span(tokens).first(i), tokens[i])) << "token " << i << " is " << tokens[i];
  }
}

TEST(TokenFilter, GivesTheSameTextWithEveryRecipeAtEveryTemperature) {
  for (const SamplingOptions& sampling : test::various_sampling()) {
    SCOPED_TRACE(testing::Message() << sampling);
    GenerateOptions options = asking(sampling);
    options.filter = numbers;
    options.top_logprobs = 3;
    const GenerateResult plain = generated(load_recipe("plain"), options);
    expect_numbers(plain.tokens);
    ASSERT_EQ(plain.tokens.size(), 24u);
    for (const Recipe& recipe : test::byte_recipes()) {
      const GenerateResult drafted = generated(recipe, options);
      EXPECT_EQ(drafted.tokens, plain.tokens) << recipe.name;
      EXPECT_EQ(drafted.logprobs, plain.logprobs) << recipe.name;
    }
  }
}

TEST(TokenFilter, HoldsForDraftsTooSoThatTheyAreKept) {
  GenerateOptions options = asking({});
  options.filter = numbers;
  const Recipe recipe = test::recipe_of("self", {test::self_level("mxfp4-w4a16", 6)});
  const Stats stats = generated(recipe, options).stats;
  // Without the filter a draft of random weights would hardly ever say a digit.
  EXPECT_GT(stats.acceptance_rate(), 0.4);
}

TEST(TokenFilter, HoldsForRecipesThatAreNotLossless) {
  for (const char* rule : {"rejection", "bild"}) {
    for (const SamplingOptions& sampling : test::various_sampling()) {
      Recipe recipe = test::recipe_of(rule, {
                                                test::ngram_level(6),
                                            });
      if (rule == std::string("bild")) {
        recipe.acceptance = Recipe::Acceptance::kBild;
        recipe.rollback = 1e6f;  // keeps whatever is possible at all
        recipe.levels = {test::self_level("mxfp4-w4a8", 6)};
      } else {
        recipe.acceptance = Recipe::Acceptance::kRejection;
      }
      GenerateOptions options = asking(sampling);
      options.filter = numbers;
      expect_numbers(generated(recipe, options).tokens);
    }
  }
}

TEST(TokenFilter, IsToldWhatThisCallHasGenerated) {
  const test::Pair& pair = test::byte_pair();
  Session session(pair.target, 64, 1);
  GenerateOptions options = asking({});
  options.max_tokens = 9;
  options.filter = numbers;
  expect_numbers(session.generate({5, 6}, options, load_recipe("plain")).tokens);
  expect_numbers(session.generate({7}, options, load_recipe("plain")).tokens);
  Engine engine(pair.target, {.max_batch = 2, .capacity = 64, .threads = 1});
  const Recipe recipe = test::made_recipes(100)[0];
  TokenStream first = engine.submit({{5, 6}, options, recipe});
  TokenStream second = engine.submit({{5, 6, 7, 8}, options, recipe});
  expect_numbers(first.wait().tokens);
  expect_numbers(second.wait().tokens);
}

TEST(TokenFilter, ThatAllowsNothingEndsTheGenerationWithAnError) {
  GenerateOptions options = asking({});
  options.filter = [](std::span<const int32_t> generated, std::span<uint8_t> allowed) {
    if (generated.size() >= 3) std::fill(allowed.begin(), allowed.end(), uint8_t{0});
  };
  for (const Recipe& recipe : {load_recipe("plain"), test::made_recipes(100)[0]}) {
    try {
      generated(recipe, options);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(std::string(error.what()).find("leaves no token"), std::string::npos) << error.what();
    }
  }
}

TEST(LogitBias, GivesTheSameTextWithEveryRecipeAtEveryTemperature) {
  for (SamplingOptions sampling : test::various_sampling()) {
    SCOPED_TRACE(testing::Message() << sampling);
    const GenerateResult free = generated(load_recipe("plain"), asking(sampling));
    sampling.logit_bias = {{free.tokens[0], kNever}, {free.tokens[3], -0.5f}, {40, 1.0f}, {40, 0.25f}};
    const GenerateResult plain = generated(load_recipe("plain"), asking(sampling));
    EXPECT_NE(plain.tokens, free.tokens);
    for (const int32_t token : plain.tokens) EXPECT_NE(token, free.tokens[0]);
    for (const Recipe& recipe : test::byte_recipes()) {
      EXPECT_EQ(generated(recipe, asking(sampling)).tokens, plain.tokens) << recipe.name;
    }
  }
}

TEST(LogitBias, ComesBeforeThePenaltyAndMayForceAToken) {
  const GenerateResult result =
      generated(load_recipe("plain"), asking({.logit_bias = {{77, 1e6f}}, .repetition_penalty = 1.5f}));
  for (const int32_t token : result.tokens) EXPECT_EQ(token, 77);
}

TEST(LogitBias, OutsideItsRangeOrTheVocabularyIsRefused) {
  const float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const LogitBias bias :
       {LogitBias{260, 1.0f}, LogitBias{-1, 1.0f}, LogitBias{5, kNan}, LogitBias{5, -kNever}}) {
    try {
      generated(load_recipe("plain"), asking({.logit_bias = {bias}}));
      FAIL() << bias.token << " " << bias.bias;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    }
  }
}

}  // namespace
}  // namespace verbatim
