#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/byte_model.h"
#include "support/structures.h"
#include "support/test_data.h"

namespace verbatim {
namespace structured_test {
namespace {

const char* const kPerson =
    R"({"type":"object","properties":{"name":{"type":"string","minLength":1,"maxLength":6},
        "age":{"type":"integer","minimum":0,"maximum":120},
        "tags":{"type":"array","items":{"enum":["red","green","größe"]},"maxItems":2}},
        "required":["name","age"],"additionalProperties":false})";

std::vector<Structure> various_structures() {
  return {Structure::json_schema(kPerson),
          Structure::json_schema(R"({"type":"array","minItems":2,"maxItems":3,
              "items":{"anyOf":[{"type":"boolean"},{"type":"string","pattern":"^[a-c]{1,3}$"}]}})"),
          Structure::sequence({Structure::free_text({"a", "e"}), Structure::regex("a\\d{3}")}),
          Structure::regex("(yes|no|maybe so){1,3}")};
}

GenerateResult generated(const Recipe& recipe, const GenerateOptions& options, const Structure& structure) {
  const test::Pair& pair = test::byte_pair();
  Session session(pair.target, 256, 1);
  session.set_draft_model(pair.draft);
  GenerateOptions structured = options;
  structured.structure = structure;
  return session.generate(pair.target.encode("abcabc"), structured, recipe);
}

GenerateOptions asking(const SamplingOptions& sampling) {
  GenerateOptions options;
  options.sampling = sampling;
  options.max_tokens = 120;
  return options;
}

TEST(StructuredReplies, HaveTheSameBytesWithEveryRecipe) {
  TOO_LONG_FOR_SANITIZERS();
  for (const SamplingOptions& sampling : test::various_sampling()) {
    SCOPED_TRACE(testing::Message() << sampling);
    GenerateOptions options = asking(sampling);
    options.top_logprobs = 2;
    for (const Structure& structure : various_structures()) {
      const GenerateResult plain = generated(load_recipe("plain"), options, structure);
      if (plain.stats.finish == FinishReason::kEndOfSequence) {
        EXPECT_TRUE(test::fits(structure, plain.text)) << plain.text;
      } else {
        EXPECT_TRUE(test::Reader(structure).begins(plain.text)) << plain.text;
      }
      for (const Recipe& recipe : test::byte_recipes()) {
        const GenerateResult drafted = generated(recipe, options, structure);
        ASSERT_EQ(drafted.tokens, plain.tokens) << recipe.name << "\n" << drafted.text << "\n" << plain.text;
        EXPECT_EQ(drafted.text, plain.text) << recipe.name;
        EXPECT_EQ(drafted.logprobs, plain.logprobs) << recipe.name;
      }
    }
  }
}

/// Schemas with much and with little forced text, for a vocabulary in which most texts can be written in many
/// ways.
std::vector<Structure> schemas_of_many_tokens() {
  return {
      Structure::json_schema(kPerson),
      Structure::json_schema(R"({"type":"object","properties":{"explanation":{"type":"string","maxLength":12},
              "temperature":{"type":"number","minimum":-40,"maximum":50},"unit":{"enum":["celsius","fahrenheit"]},
              "certain":{"type":"boolean"}},"required":["explanation","temperature","unit","certain"],
              "additionalProperties":false})"),
      Structure::json_schema(R"({"type":"object","properties":{"größe":{"const":"日本語"},"😀":{"type":"null"},
              "list":{"type":"array","items":{"type":"object","properties":{"identifier":{"type":"integer",
              "minimum":0,"maximum":99}},"required":["identifier"],"additionalProperties":false},"minItems":1,
              "maxItems":2}},"required":["größe","😀","list"],"additionalProperties":false})"),
      Structure::sequence({Structure::text("The answer, as far as anybody knows, is "),
                           Structure::regex("(yes|no|not known)\\.")})};
}

TEST(StructuredReplies, HaveTheSameBytesWithAVocabularyOfLongTokens) {
  TOO_LONG_FOR_SANITIZERS();
  const Recipe ngram = test::recipe_of("ngram", {test::ngram_level(4)});
  const std::vector<Recipe> recipes = {load_recipe("auto"), load_recipe("ml-specqd"), ngram};
  std::vector<Recipe> needed = recipes;
  needed.push_back(load_recipe("plain"));
  const Model model = Model::load(test::default_model(), ModelOptions{.recipes = needed, .threads = 1});
  Engine engine(model, {.max_batch = 4, .capacity = 192, .threads = 1});
  const auto prompt = model.encode("Here is a record of the data base: ");
  int64_t certain = 0;
  for (const float temperature : {0.0f, 1.0f}) {
    for (const Structure& structure : schemas_of_many_tokens()) {
      GenerateOptions options = asking({.temperature = temperature, .seed = 5});
      options.structure = structure;
      const GenerateResult plain = Session(model, 192, 1).generate(prompt, options, load_recipe("plain"));
      EXPECT_TRUE(test::fits(structure, plain.text)) << plain.text;
      EXPECT_EQ(plain.stats.drafted, 0);
      std::vector<TokenStream> streams;
      for (const Recipe& recipe : recipes) streams.push_back(engine.submit({prompt, options, recipe}));
      for (size_t i = 0; i < recipes.size(); ++i) {
        const GenerateResult alone = Session(model, 192, 1).generate(prompt, options, recipes[i]);
        EXPECT_EQ(alone.tokens, plain.tokens) << recipes[i].name << "\n" << alone.text << "\n" << plain.text;
        EXPECT_EQ(streams[i].wait().tokens, plain.tokens) << recipes[i].name << " in a batch";
        certain += alone.stats.structure_accepted;
      }
    }
  }
  EXPECT_GT(certain, 0);
}

TEST(StructuredReplies, KeepEveryDraftedTokenThatTheStructureForces) {
  const Recipe recipe = test::recipe_of("ngram", {test::ngram_level(4)});
  const Model model = Model::load(test::default_model(), ModelOptions{.threads = 1});
  for (const Structure& structure : schemas_of_many_tokens()) {
    GenerateOptions options = asking({.temperature = 1.0f, .seed = 2});
    options.structure = structure;
    options.origins = true;
    const GenerateResult result =
        Session(model, 192, 1).generate(model.encode("A record: "), options, recipe);
    int certain = 0;
    for (const TokenOrigin& origin : result.origins) {
      if (origin.level != TokenOrigin::kStructure || origin.confidence < 1.0f) continue;
      EXPECT_EQ(origin.kind, TokenOrigin::Kind::kDrafted);
      ++certain;
    }
    EXPECT_GT(certain, 3) << result.text;
  }
}

TEST(StructuredReplies, FitTheirSchemaForEverySeed) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    GenerateOptions options = asking({.temperature = 1.0f, .seed = seed});
    const GenerateResult plain = generated(load_recipe("plain"), options, Structure::json_schema(kPerson));
    ASSERT_EQ(plain.stats.finish, FinishReason::kEndOfSequence) << plain.text;
    const auto value = nlohmann::json::parse(plain.text);
    EXPECT_TRUE(value["name"].is_string());
    EXPECT_LE(value["age"].get<int>(), 120);
    const GenerateResult drafted = generated(test::recipe_of("self", {test::self_level("mxfp4-w4a16", 6)}),
                                             options, Structure::json_schema(kPerson));
    EXPECT_EQ(drafted.text, plain.text);
  }
}

TEST(StructuredReplies, DraftTheOnlyTextThatFits) {
  GenerateOptions options = asking({});
  options.origins = true;
  // This vocabulary has one way to write a text without spaces, so that all of it is kept.
  const Structure fixed = Structure::text("the-only-text-that-fits");
  const GenerateResult plain = generated(load_recipe("plain"), options, fixed);
  EXPECT_EQ(plain.text, "the-only-text-that-fits");
  EXPECT_EQ(plain.stats.drafted, 0);
  const Recipe recipe = test::recipe_of("ngram", {test::ngram_level(4)});
  const GenerateResult drafted = generated(recipe, options, fixed);
  EXPECT_EQ(drafted.tokens, plain.tokens);
  EXPECT_EQ(drafted.stats.accepted, drafted.stats.drafted);
  EXPECT_EQ(drafted.stats.structure_drafted, drafted.stats.drafted);
  EXPECT_EQ(drafted.stats.structure_accepted, drafted.stats.accepted);
  EXPECT_LE(drafted.stats.target_passes, 2);
  EXPECT_EQ(drafted.stats.structure_steps, drafted.stats.target_passes);
  EXPECT_EQ(drafted.stats.levels.front().accepted, 0);
  ASSERT_GT(drafted.origins.size(), 3u);
  EXPECT_EQ(drafted.origins[1].kind, TokenOrigin::Kind::kDrafted);
  EXPECT_EQ(drafted.origins[1].level, TokenOrigin::kStructure);
}

TEST(StructuredReplies, TakeNoDraftPassesForForcedTextWithinADraft) {
  GenerateOptions options = asking({});
  options.origins = true;
  const Structure structure = Structure::regex("[ab]-the-only-text-that-fits-[ab]-and-so-on-[ab]");
  const GenerateResult plain = generated(load_recipe("plain"), options, structure);
  for (const Recipe& recipe : {test::recipe_of("self", {test::self_level("mxfp4-w4a16", 32)}),
                               test::recipe_of("model", {test::model_level("mxfp4-w4a16", 32)})}) {
    const GenerateResult drafted = generated(recipe, options, structure);
    EXPECT_EQ(drafted.tokens, plain.tokens);
    const int64_t levels = drafted.stats.structure_drafted;
    EXPECT_GT(levels, 30) << recipe.name;
    EXPECT_LT(drafted.stats.draft_passes, 12) << recipe.name;
    EXPECT_LT(drafted.stats.target_passes, 8) << recipe.name;
    EXPECT_GE(
        std::count_if(drafted.origins.begin(), drafted.origins.end(),
                      [](const TokenOrigin& origin) { return origin.level == TokenOrigin::kStructure; }),
        drafted.stats.structure_accepted)
        << recipe.name;
  }
}

TEST(StructuredReplies, DraftNothingBehindTheirEnd) {
  const Recipe recipe = test::recipe_of("self", {test::self_level("mxfp4-w4a16", 32)});
  for (const char* words : {"yes|no", "(yes|no|maybe so){1,3}"}) {
    const GenerateResult result = generated(recipe, asking({}), Structure::regex(words));
    // Behind a token that is rejected a draft may go on as long as it may be.
    EXPECT_LE(result.stats.drafted, result.stats.generated_tokens + 32 * result.stats.rollbacks)
        << result.text;
  }
}

TEST(StructuredReplies, HoldForRecipesThatAreNotLossless) {
  for (const char* rule : {"rejection", "bild"}) {
    for (const SamplingOptions& sampling : test::various_sampling()) {
      Recipe recipe = test::recipe_of(rule, {test::ngram_level(6)});
      recipe.acceptance =
          rule == std::string("bild") ? Recipe::Acceptance::kBild : Recipe::Acceptance::kRejection;
      const Structure structure = Structure::json_schema(kPerson);
      const GenerateResult result = generated(recipe, asking(sampling), structure);
      EXPECT_TRUE(test::Reader(structure).begins(result.text)) << rule << ": " << result.text;
    }
  }
}

TEST(StructuredReplies, ApplyTogetherWithAFilterAndABias) {
  GenerateOptions options = asking({.temperature = 1.0f});
  // No 'y', so that only the other words are left; and no 'm'.
  options.sampling.logit_bias = {{test::kFirstByte + 'y', -std::numeric_limits<float>::infinity()}};
  options.filter = [](std::span<const int32_t>, std::span<uint8_t> allowed) {
    allowed[test::kFirstByte + 'm'] = 0;
  };
  const Structure words = Structure::regex("yes|no|may");
  for (const Recipe& recipe : test::byte_recipes()) EXPECT_EQ(generated(recipe, options, words).text, "no");
  options.filter = [](std::span<const int32_t>, std::span<uint8_t> allowed) {
    allowed[test::kFirstByte + 'm'] = 0;
    allowed[test::kFirstByte + 'n'] = 0;
  };
  try {
    generated(load_recipe("plain"), options, words);
    FAIL() << "a token was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  }
}

TEST(StructuredReplies, EndWithAStopTokenWhereTheTextIsComplete) {
  GenerateOptions options = asking({});
  options.stop_tokens = {test::kFirstByte + '!'};
  options.sampling.logit_bias = {{test::kFirstByte + '!', 1000.0f}};
  const GenerateResult result = generated(load_recipe("plain"), options, Structure::regex("[ab!]{5}c*"));
  EXPECT_EQ(result.text.size(), 5u);
  EXPECT_EQ(result.text.find('!'), std::string::npos);
  EXPECT_EQ(result.tokens.back(), test::kFirstByte + '!');
}

TEST(StructuredReplies, GoOnWithTheEndWhereEndsAreIgnored) {
  GenerateOptions options = asking({});
  options.ignore_eos = true;
  options.max_tokens = 10;
  for (const Recipe& recipe : test::byte_recipes()) {
    const GenerateResult result = generated(recipe, options, Structure::text("no"));
    EXPECT_EQ(result.text, "no");
    EXPECT_EQ(result.tokens.size(), 10u);
  }
}

TEST(StructuredReplies, AreRefusedBeforeAnythingIsComputed) {
  const test::Pair& pair = test::byte_pair();
  Engine engine(pair.target, {.max_batch = 1, .capacity = 64, .threads = 1});
  GenerateOptions options = asking({});
  options.max_tokens = 8;
  options.structure = Structure::repeat(Structure::regex("a{1,2}"), 1, 3);
  EXPECT_NO_THROW(engine.submit({pair.target.encode("ab"), options, load_recipe("plain")}).wait());
  options.structure = Structure::regex("a[]");  // a class without characters
  try {
    engine.submit({pair.target.encode("ab"), options, load_recipe("plain")});
    FAIL() << "the structure was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
  }
}

TEST(StructuredReplies, AreTheSameInABatch) {
  const test::Pair& pair = test::byte_pair();
  Recipe recipe = test::recipe_of("self", {test::self_level("mxfp4-w4a16", 4), test::ngram_level(4)});
  Engine engine(pair.target, {.max_batch = 4, .capacity = 256, .threads = 1});
  std::vector<TokenStream> streams;
  std::vector<std::string> expected;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    GenerateOptions options = asking({.temperature = 1.0f, .seed = seed});
    options.structure = various_structures()[seed % 4];
    expected.push_back(generated(load_recipe("plain"), options, *options.structure).text);
    streams.push_back(engine.submit({pair.target.encode("abcabc"), options, recipe}));
  }
  for (size_t i = 0; i < streams.size(); ++i) EXPECT_EQ(streams[i].wait().text, expected[i]);
}

/// The tokens and the reason for the end, or the message of the error, of a generation.
std::string outcome(const Recipe& recipe, const GenerateOptions& options, const Structure& structure) {
  try {
    const GenerateResult result = generated(recipe, options, structure);
    std::string text = result.text + " " + std::to_string(static_cast<int>(result.stats.finish));
    for (const int32_t token : result.tokens) text += " " + std::to_string(token);
    return text;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(StructuredReplies, EndWithAStopStringBeforeADeadEndWithEveryRecipe) {
  GenerateOptions options = asking({});
  // Nothing may follow "no-".
  options.sampling.logit_bias = {{test::kFirstByte + 'e', -std::numeric_limits<float>::infinity()}};
  for (const Structure& structure : {Structure::text("yes-no-end"), Structure::regex("yes-no-end[a-z]{0,3}"),
                                     Structure::regex("(yes-){1,4}no-(e|e[a-z]*)")}) {
    for (const std::vector<std::string>& stop :
         std::vector<std::vector<std::string>>{{"no-"}, {"o-"}, {"no"}, {}, {"s-"}}) {
      options.stop = stop;
      const std::string plain = outcome(load_recipe("plain"), options, structure);
      for (const Recipe& recipe : test::byte_recipes()) {
        EXPECT_EQ(outcome(recipe, options, structure), plain) << recipe.name;
      }
    }
  }
}

TEST(StructuredReplies, FailForAmbiguityWhereThePlainReplyDoes) {
  // Every way to share the letters among the repetitions is a way to read them.
  const Structure part = Structure::repeat(Structure::text("a"), 1, 2000);
  const Structure structure = Structure::sequence(
      {Structure::text("go:"), Structure::repeat(Structure::repeat(part, 1, 2000), 1, 2000),
       Structure::text("!")});
  test::Reader reader(structure);
  std::string text = "go:";
  EXPECT_THROW(for (; text.size() < 4000; text += 'a') reader.begins(text), Error);
  ASSERT_LT(text.size(), 200u) << "the sequence has no room for the place where it fails";
  GenerateOptions options = asking({});
  options.sampling.logit_bias = {{test::kFirstByte + '!', -std::numeric_limits<float>::infinity()}};
  int failed = 0;
  for (size_t most = text.size() - 4; most < text.size() + 3; ++most) {
    options.max_tokens = static_cast<int64_t>(most);
    const std::string plain = outcome(load_recipe("plain"), options, structure);
    failed += plain.find("ambiguous") != std::string::npos ? 1 : 0;
    for (const Recipe& recipe : test::byte_recipes()) {
      EXPECT_EQ(outcome(recipe, options, structure), plain) << recipe.name << ", " << most << " tokens";
    }
  }
  EXPECT_GT(failed, 0);
  EXPECT_LT(failed, 7);
}

TEST(StructuredReplies, EndWithStopTokensOfTheVocabularyAlone) {
  GenerateOptions options = asking({});
  options.stop_tokens = {-1, 1 << 30};
  const Structure structure = Structure::regex("[ab]{5}c*");
  const std::string plain = outcome(load_recipe("plain"), options, structure);
  options.stop_tokens = {};
  EXPECT_EQ(outcome(load_recipe("plain"), options, structure), plain);
}

}  // namespace
}  // namespace structured_test
}  // namespace verbatim
