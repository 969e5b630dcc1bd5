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
  EXPECT_EQ(names, (std::vector<std::string>{"bild", "draft-model", "early-exit", "ml-specqd", "ml-specqd-2",
                                             "nested", "ngram", "plain", "self-int4", "speq"}));
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

TEST(Recipe, AnUnknownNameOrFileIsBadInput) {
  EXPECT_THROW(load_recipe("no-such-recipe"), Error);
  EXPECT_THROW(load_recipe("/no/such/file.toml"), Error);
}

}  // namespace
}  // namespace verbatim
