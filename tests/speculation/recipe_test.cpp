#include "verbatim/recipe.h"

#include <gtest/gtest.h>

#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

const std::string kHead = "name = \"x\"\nsummary = \"s\"\nsource = \"p\"\n";

std::string error_of(const std::string& toml) {
  try {
    parse_recipe(toml, "recipe.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error for: " << toml;
  return "";
}

TEST(Recipe, BuiltInRecipesLoadUnderTheirNames) {
  const std::vector<std::string> names = recipe_names();
  EXPECT_EQ(names, (std::vector<std::string>{
                       "auto",        "bild",         "draft-model", "early-exit",   "ml-specqd",
                       "ml-specqd-2", "nested",       "ngram",       "plain",        "qspec",
                       "qspec-atom",  "qspec-quarot", "quantspec",   "quantspec-kv", "quantspec-weights",
                       "self-int4",   "snapkv",       "speq",        "streamingllm", "w4a16",
                       "w4a4"}));
  for (const std::string& name : names) {
    const Recipe recipe = load_recipe(name);
    EXPECT_EQ(recipe.name, name);
    EXPECT_FALSE(recipe.summary.empty());
    EXPECT_FALSE(recipe.source.empty());
    EXPECT_EQ(recipe.lossless(), name != "bild");
  }
  EXPECT_TRUE(load_recipe("plain").plain());
  const Recipe specqd = load_recipe("ml-specqd");
  ASSERT_EQ(specqd.levels.size(), 1U);
  EXPECT_EQ(specqd.levels[0].kind, DraftLevel::Kind::kSelf);
  EXPECT_EQ(specqd.levels[0].reading, "mxfp4-w4a8");
  EXPECT_EQ(specqd.formats(), (std::vector<std::string>{"full", "mxfp4"}));
  EXPECT_EQ(load_recipe("plain").formats(), (std::vector<std::string>{"full"}));
}

TEST(Recipe, OfAQuantizedModelTakesNoOtherWeights) {
  EXPECT_EQ(load_recipe("w4a16").formats(), std::vector<std::string>{"int4"});
  EXPECT_EQ(load_recipe("qspec").formats(), std::vector<std::string>{"int4"});
  EXPECT_EQ(load_recipe("qspec").reading, "int4-w4a16");
  EXPECT_EQ(load_recipe("plain").reading, "full");
  EXPECT_NE(error_of("reading = \"int5\"\n" + kHead).find("int5"), std::string::npos);
}

std::vector<std::string> formats_for(const std::string& reading) {
  return parse_recipe(kHead + "[drafter]\nkind = \"self\"\nreading = \"" + reading + "\"\n", "x").formats();
}

// Rounded to these the model would say something else, and its recipe could not be lossless.
TEST(Recipe, DraftsInAPlainFormatAreVerifiedByTheModelsOwnWeights) {
  EXPECT_EQ(formats_for("bf16"), (std::vector<std::string>{"full", "bf16"}));
  EXPECT_EQ(formats_for("f16"), (std::vector<std::string>{"full", "f16"}));
}

TEST(Recipe, DraftsNestedInLosslessWeightsTakeNoOthers) {
  EXPECT_EQ(formats_for("bsfp-draft"), std::vector<std::string>{"bsfp"});
  EXPECT_EQ(formats_for("mxbf16-draft"), std::vector<std::string>{"mxbf16"});
}

TEST(Recipe, AFileIsReadByItsName) {
  const test::TemporaryFolder folder;
  const auto path =
      folder.write("mine.toml", kHead +
                                    "[drafter]\nkind = \"self\"\nreading = "
                                    "\"mxfp4-w4a16\"\n[drafter.stop]\nlength = 3\nthreshold = 0.25\n");
  const Recipe recipe = load_recipe(path.string());
  ASSERT_EQ(recipe.levels.size(), 1U);
  EXPECT_EQ(recipe.levels[0].reading, "mxfp4-w4a16");
  EXPECT_EQ(recipe.levels[0].length, 3);
  EXPECT_FLOAT_EQ(recipe.levels[0].threshold, 0.25f);
}

TEST(Recipe, MistakesAreNamedWithTheirPlace) {
  const std::string drafter = kHead + "[drafter]\nkind = \"self\"\nreading = \"mxfp4-w4a8\"\n";
  EXPECT_NE(error_of("name = ").find("line 1"), std::string::npos);
  EXPECT_NE(error_of("name = 3\nsummary = \"\"\nsource = \"\"").find("name"), std::string::npos);
  EXPECT_NE(error_of("name = \"x\"").find("summary"), std::string::npos);
  EXPECT_NE(error_of(kHead + "speed = 9\n").find("\"speed\" in line 4"), std::string::npos);
  EXPECT_NE(error_of(kHead + "drafter = 1\n").find("drafter"), std::string::npos);
  EXPECT_NE(error_of(kHead + "[stop]\nlength = 2\n").find("\"stop\""), std::string::npos);
  EXPECT_NE(error_of(kHead + "[drafter]\nkind = \"oracle\"\nreading = \"full\"\n").find("oracle"),
            std::string::npos);
  EXPECT_NE(error_of(kHead + "[drafter]\nkind = \"self\"\nreading = \"mxfp2\"\n").find("mxfp2"),
            std::string::npos);
  for (const char* bad : {"length = 0", "length = 65", "length = 1.5", "length = \"8\"", "threshold = -0.1",
                          "threshold = 1.1", "threshold = nan", "lenght = 8"}) {
    EXPECT_NE(error_of(drafter + "[drafter.stop]\n" + bad + "\n").find("recipe.toml"), std::string::npos)
        << bad;
  }
}

TEST(Recipe, DraftersLieInEachOther) {
  const Recipe recipe = parse_recipe(kHead + R"(
[drafter]
kind = "self"
reading = "mxfp4-w4a8"
layers = 3
experts = 2
vocabulary = 1000
[drafter.stop]
length = 12
threshold = 0.5
[drafter.tree]
breadth = 2
nodes = 30
[drafter.drafter]
kind = "model"
model = "somewhere"
[drafter.drafter.stop]
length = 5
[drafter.drafter.drafter]
kind = "ngram"
longest_match = 4
shortest_match = 2
table = "counts"
)",
                                     "x");
  ASSERT_EQ(recipe.levels.size(), 3U);
  const DraftLevel& self = recipe.levels[0];
  EXPECT_EQ(self.kind, DraftLevel::Kind::kSelf);
  EXPECT_EQ(self.layers, 3);
  EXPECT_EQ(self.experts, 2);
  EXPECT_EQ(self.vocabulary, 1000);
  EXPECT_EQ(self.length, 12);
  EXPECT_EQ(self.threshold, 0.5f);
  EXPECT_EQ(self.breadth, 2);
  EXPECT_EQ(self.nodes, 30);
  const DraftLevel& model = recipe.levels[1];
  EXPECT_EQ(model.kind, DraftLevel::Kind::kModel);
  EXPECT_EQ(model.reading, "full");
  EXPECT_EQ(model.model, "somewhere");
  EXPECT_EQ(model.length, 5);
  EXPECT_EQ(model.threshold, 0.0f);
  EXPECT_EQ(model.breadth, 1);
  const DraftLevel& ngram = recipe.levels[2];
  EXPECT_EQ(ngram.kind, DraftLevel::Kind::kNgram);
  EXPECT_EQ(ngram.longest_match, 4);
  EXPECT_EQ(ngram.shortest_match, 2);
  EXPECT_EQ(ngram.table, "counts");
  EXPECT_TRUE(recipe.needs_draft_model());
  EXPECT_EQ(recipe.formats(), (std::vector<std::string>{"full", "mxfp4"}));
  EXPECT_EQ(recipe.draft_model_formats(), std::vector<std::string>{"full"});
  EXPECT_FALSE(load_recipe("nested").needs_draft_model());
  EXPECT_EQ(load_recipe("nested").formats(), std::vector<std::string>{"mxbf16"});
  EXPECT_EQ(load_recipe("early-exit").formats(), std::vector<std::string>{"full"});
  EXPECT_EQ(load_recipe("ml-specqd-2").draft_model_formats(), std::vector<std::string>{"mxfp4"});
}

TEST(Recipe, AnAcceptanceRuleSaysWhatHoldsForTheText) {
  const std::string drafter = kHead + "[drafter]\nkind = \"ngram\"\n";
  const Recipe exact = parse_recipe(drafter + "[acceptance]\nrule = \"exact\"\n", "x");
  EXPECT_TRUE(exact.lossless());
  EXPECT_EQ(exact.guarantee(), "bytes");
  EXPECT_EQ(parse_recipe(drafter, "x").guarantee(), "bytes");
  const Recipe rejection = parse_recipe(drafter + "[acceptance]\nrule = \"rejection\"\n", "x");
  EXPECT_EQ(rejection.acceptance, Recipe::Acceptance::kRejection);
  EXPECT_FALSE(rejection.lossless());
  EXPECT_EQ(rejection.guarantee(), "distribution");
  const Recipe bild = parse_recipe(drafter + "[acceptance]\nrule = \"bild\"\nrollback = 1.5\n", "x");
  EXPECT_EQ(bild.acceptance, Recipe::Acceptance::kBild);
  EXPECT_EQ(bild.rollback, 1.5f);
  EXPECT_FALSE(bild.lossless());
  EXPECT_EQ(bild.guarantee(), "none");
  EXPECT_EQ(parse_recipe(drafter + "[acceptance]\nrule = \"bild\"\nrollback = 0\n", "x").rollback, 0.0f);
}

TEST(Recipe, RulesThatKnowNoTreesRefuseThem) {
  const std::string tree = kHead + "[drafter]\nkind = \"ngram\"\n[drafter.tree]\nbreadth = 2\n";
  for (const std::string rule : {"rejection", "bild"}) {
    const std::string rules = "[acceptance]\nrule = \"" + rule + "\"\n";
    const std::string message = error_of(tree + rules);
    EXPECT_NE(message.find(rule), std::string::npos) << message;
    EXPECT_NE(message.find("breadth"), std::string::npos) << message;
    // A tree further inside is verified by a drafter, exactly.
    const Recipe inside =
        parse_recipe(kHead +
                         "[drafter]\nkind = \"self\"\nreading = \"mxfp4-w4a8\"\n[drafter.drafter]\nkind = "
                         "\"ngram\"\n[drafter.drafter.tree]\nbreadth = 2\n" +
                         rules,
                     "x");
    EXPECT_EQ(inside.levels[1].breadth, 2);
  }
}

TEST(Recipe, FewerLayersOrExpertsDraftInTheModelsOwnReading) {
  for (const std::string fewer : {"layers", "experts"}) {
    const Recipe recipe =
        parse_recipe(kHead + "[drafter]\nkind = \"self\"\nreading = \"full\"\n" + fewer + " = 1\n", "x");
    EXPECT_EQ(recipe.levels.front().layers + recipe.levels.front().experts, 1) << fewer;
    EXPECT_EQ(recipe.formats(), std::vector<std::string>{"full"}) << fewer;
  }
}

TEST(Recipe, OnlyTheModelItselfDraftsWithFewerExperts) {
  Recipe recipe = parse_recipe(kHead + "[drafter]\nkind = \"model\"\n", "x");
  recipe.levels.front().experts = 1;
  EXPECT_THROW(validate(recipe), Error);
}

TEST(Recipe, MistakesInDraftersAndRulesAreNamed) {
  const std::string ngram = "[drafter]\nkind = \"ngram\"\n";
  const std::string self = "[drafter]\nkind = \"self\"\nreading = \"mxfp4-w4a8\"\n";
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {ngram + "reading = \"full\"\n", "\"reading\" in line 6"},
      {ngram + "[drafter.drafter]\nkind = \"ngram\"\n", "\"drafter\""},
      {ngram + "longest_match = 2\nshortest_match = 3\n", "shortest_match"},
      {ngram + "longest_match = 33\n", "longest_match"},
      {ngram + "shortest_match = 0\n", "shortest_match"},
      {ngram + "table = 3\n", "table"},
      {"[drafter]\nreading = \"full\"\n", "\"kind\" is missing"},
      {"[drafter]\nkind = \"self\"\n", "\"reading\" is missing"},
      {"[drafter]\nkind = \"self\"\nreading = \"full\"\n", "cost"},
      {self + "model = \"x\"\n", "\"model\""},
      {self + "layers = -1\n", "layers"},
      {self + "layers = true\n", "layers"},
      {self + "experts = -1\n", "experts"},
      {self + "experts = 65537\n", "experts"},
      {self + "vocabulary = 0.5\n", "vocabulary"},
      {self + "vocabulary = -3\n", "vocabulary"},
      {self + "[drafter.tree]\nbreadth = 9\n", "breadth"},
      {self + "[drafter.tree]\nbreadth = 0\n", "breadth"},
      {self + "[drafter.tree]\nnodes = 65\n", "nodes"},
      {self + "[drafter.tree]\nwidth = 2\n", "\"width\""},
      {self + "tree = 3\n", "\"tree\" must be a table"},
      {self + "drafter = \"ngram\"\n", "\"drafter\" must be a table"},
      {self + "[drafter.drafter]\nkind = \"self\"\nreading = \"full\"\n", "cost"},
      {"[drafter]\nkind = \"model\"\nlayers = 2\n", "\"layers\""},
      {"[drafter]\nkind = \"model\"\nexperts = 1\n", "\"experts\""},
      {"[drafter]\nkind = \"model\"\nreading = \"half\"\n", "half"},
      {"[drafter]\nkind = \"model\"\nmodel = 1\n", "\"model\""},
      {"[acceptance]\nrule = \"sometimes\"\n", "sometimes"},
      {"[acceptance]\nrollback = 1\n", "\"rule\" is missing"},
      {"[acceptance]\nrule = \"exact\"\nrollback = 1\n", "rollback"},
      {"[acceptance]\nrule = \"rejection\"\nrollback = 1\n", "rollback"},
      {"[acceptance]\nrule = \"bild\"\nrollback = -1\n", "rollback"},
      {"[acceptance]\nrule = \"bild\"\nfallback = 1\n", "\"fallback\""},
      {"acceptance = \"bild\"\n", "\"acceptance\" must be a table"},
      {"planner = 1\n", "\"planner\" must be true or false"},
      {"planner = true\n[acceptance]\nrule = \"rejection\"\n", "planner"},
  };
  for (const auto& [toml, named] : mistakes) {
    const std::string message = error_of(kHead + toml);
    EXPECT_TRUE(message.starts_with("recipe.toml: ")) << message;
    EXPECT_NE(message.find(named), std::string::npos) << message << "\n" << toml;
  }
}

// QuantSpec §5.1: a quarter of the context, and the lengths that its appendix G finds best.
TEST(Recipe, TheSparseBaselinesAreThoseOfThePaper) {
  for (const auto& [name, cache] : {std::pair("streamingllm", "window"), std::pair("snapkv", "snapkv")}) {
    const Recipe recipe = load_recipe(name);
    ASSERT_EQ(recipe.levels.size(), 1U);
    EXPECT_EQ(recipe.levels[0].reading, "full");
    EXPECT_EQ(recipe.levels[0].cache, cache);
    EXPECT_EQ(recipe.levels[0].budget, 0.25f);
    EXPECT_EQ(recipe.levels[0].length, 1);
    EXPECT_EQ(recipe.formats(), std::vector<std::string>{"full"});
  }
}

TEST(Recipe, MistakesInSparseLevelsAreNamed) {
  for (const std::string cache : {"window", "snapkv"}) {
    const std::string level =
        "[drafter]\nkind = \"self\"\nreading = \"mxfp4-w4a8\"\ncache = \"" + cache + "\"\n";
    EXPECT_EQ(parse_recipe(kHead + level + "budget = 0.5\n", "x").levels[0].budget, 0.5f);
    EXPECT_EQ(parse_recipe(kHead + level + "[cache]\nkind = \"f16\"\n", "x").levels[0].cache, cache);
    for (const std::string kind : {"int8", "hierarchical"}) {
      const std::string message = error_of(kHead + level + "[cache]\nkind = \"" + kind + "\"\n");
      EXPECT_NE(message.find(cache), std::string::npos) << message;
      EXPECT_NE(message.find("not in " + kind), std::string::npos) << message;
    }
    EXPECT_NE(error_of("planner = true\n" + kHead + level).find("planner"), std::string::npos);
    EXPECT_NE(error_of(kHead + "[drafter]\nkind = \"ngram\"\ncache = \"" + cache + "\"\n").find("\"cache\""),
              std::string::npos);
    for (const std::string budget : {"0", "-0.5", "1.5", "\"much\"", "nan"}) {
      EXPECT_NE(error_of(kHead + level + "budget = " + budget + "\n").find("budget"), std::string::npos);
    }
  }
  const std::string self = "[drafter]\nkind = \"self\"\nreading = \"mxfp4-w4a8\"\n";
  EXPECT_NE(error_of(kHead + self + "budget = 0.5\n").find("window and snapkv"), std::string::npos);
  EXPECT_NE(error_of(kHead + self + "cache = \"heavy-hitters\"\n").find("heavy-hitters"), std::string::npos);
}

TEST(Recipe, LevelsAreNotEndless) {
  std::string toml = kHead;
  std::string table = "drafter";
  for (int i = 0; i < 9; ++i) {
    toml += "[" + table + "]\nkind = \"self\"\nreading = \"mxfp4-w4a8\"\n";
    if (i == 7) {
      EXPECT_EQ(parse_recipe(toml, "x").levels.size(), 8U);
    }
    table += ".drafter";
  }
  EXPECT_NE(error_of(toml).find("8 levels"), std::string::npos);
}

TEST(Recipe, AFileOfDotsDoesNotUseUpTheStack) {
  const auto dotted = [](size_t depth) {
    std::string header = "[a";
    for (size_t i = 1; i < depth; ++i) header += ".a";
    return header + "]\n";
  };
  EXPECT_NE(error_of(dotted(8000)).find("unknown key \"a\""), std::string::npos);
  EXPECT_NE(error_of(dotted(1000000)).find("longer than 16384 bytes"), std::string::npos);
  const test::TemporaryFolder folder;
  EXPECT_THROW(load_recipe(folder.write("long.toml", kHead + std::string(20000, '#'))), Error);
}

TEST(Recipe, AnUnknownNameIsWrongUsageAndAFileThatIsNotThereIsBadInput) {
  const auto kind_of = [](const std::string& name_or_path) {
    try {
      load_recipe(name_or_path);
    } catch (const Error& error) {
      return static_cast<int>(error.kind());
    }
    return 0;
  };
  EXPECT_EQ(kind_of("no-such-recipe"), static_cast<int>(ErrorKind::kUsage));
  EXPECT_EQ(kind_of(""), static_cast<int>(ErrorKind::kUsage));
  EXPECT_EQ(kind_of("/no/such/file.toml"), static_cast<int>(ErrorKind::kBadInput));
}

}  // namespace
}  // namespace verbatim
