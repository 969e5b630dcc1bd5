#include "verbatim/outlook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "support/trained_gguf.h"
#include "verbatim/pack.h"

namespace verbatim {
namespace {

using ::testing::Contains;
using ::testing::Not;

std::vector<std::string> names_of(const Outlook& outlook) {
  std::vector<std::string> names;
  for (const RecipeOutlook& recipe : outlook.recipes) names.push_back(recipe.name);
  return names;
}

int64_t weights_of(const Outlook& outlook, const std::string& name) {
  for (const RecipeOutlook& recipe : outlook.recipes) {
    if (recipe.name == name) return recipe.weight_bytes;
  }
  return 0;
}

TEST(Outlook, BoundsSpeedsByMemoryAndArithmetic) {
  ModelReport report = inspect_model(test::default_model());
  const Outlook outlook = outlook_for(report);
  EXPECT_GT(outlook.read_bandwidth, 0);
  EXPECT_GT(outlook.operations, 0);
  EXPECT_DOUBLE_EQ(outlook.tokens_per_second * static_cast<double>(report.memory.pass),
                   outlook.read_bandwidth);
  const double without_head =
      static_cast<double>(report.memory.weights - int64_t{report.vocab_size} * report.hidden_size);
  EXPECT_DOUBLE_EQ(outlook.prompt_tokens_per_second * 2.0 * without_head, outlook.operations);
}

TEST(Outlook, RecipesOfAModelInBf16HaveStoresAndCopies) {
  const ModelReport report = inspect_model(test::default_model());
  const Outlook outlook = outlook_for(report);
  EXPECT_EQ(weights_of(outlook, "plain"), report.memory.full);
  EXPECT_EQ(weights_of(outlook, "auto"), report.memory.full + report.memory.mxfp4);
  EXPECT_GT(weights_of(outlook, "ml-specqd"), report.memory.full);
  EXPECT_LT(weights_of(outlook, "nested"), report.memory.full);
  for (const RecipeOutlook& recipe : outlook.recipes)
    EXPECT_EQ(recipe.longest_context, report.context) << recipe.name;
}

TEST(Outlook, RecipesWhoseStoreKeepsBf16AreNotThoseOfOtherTypes) {
  const Outlook outlook = outlook_for(inspect_model(test::draft_gguf()));
  EXPECT_THAT(names_of(outlook), Contains("ml-specqd"));
  EXPECT_THAT(names_of(outlook), Not(Contains("nested")));
}

TEST(Outlook, APackedFileHasTheRecipesOfItsFormats) {
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model");
  const std::filesystem::path file = folder.path() / "model.vbt";
  ASSERT_TRUE(pack_model(folder.path() / "model", file, {.formats = {"full", "int4"}, .threads = 2}));
  const Outlook outlook = outlook_for(inspect_model(file));
  EXPECT_THAT(names_of(outlook), Contains("self-int4"));
  EXPECT_THAT(names_of(outlook), Contains("auto"));
  EXPECT_THAT(names_of(outlook), Not(Contains("ml-specqd")));
}

TEST(Outlook, AContextIsAsLongAsMemoryAllows) {
  ModelReport report = inspect_model(test::default_model());
  report.memory.kv_per_token = int64_t{1} << 40;
  for (const RecipeOutlook& recipe : outlook_for(report).recipes)
    EXPECT_LT(recipe.longest_context, 100) << recipe.name;
}

TEST(Outlook, AutoTakesOneStoreWhereACopyDoesNotFit) {
  ModelReport report = inspect_model(test::default_model());
  report.memory.full = int64_t{1} << 60;
  const Outlook outlook = outlook_for(report);
  EXPECT_EQ(weights_of(outlook, "auto"), weights_of(outlook, "nested"));
  for (const RecipeOutlook& recipe : outlook.recipes) {
    const bool without_full = recipe.name == "auto" || recipe.name == "nested" || recipe.name == "speq";
    EXPECT_EQ(recipe.longest_context, without_full ? report.context : 0) << recipe.name;
  }
}

TEST(Outlook, MemoryWithAContextIsThatOfWholeChunks) {
  const ModelReport report = inspect_model(test::default_model());
  EXPECT_EQ(memory_with_context(report.memory, report.context),
            report.memory.full + report.memory.kv_context);
  EXPECT_GT(memory_with_context(report.memory, 1), report.memory.full);
  EXPECT_EQ(memory_with_context({.kv_per_token = int64_t{1} << 40}, int64_t{1} << 40), INT64_MAX);
}

}  // namespace
}  // namespace verbatim
