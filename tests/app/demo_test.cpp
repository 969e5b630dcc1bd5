#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/run_program.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::run_program;
using test::RunResult;
using ::testing::HasSubstr;
using ::testing::Not;

RunResult demo(std::vector<std::string> more) {
  more.insert(more.begin(), {"demo", test::default_model(), "-n", "12", "--rounds", "1"});
  return run_program(more);
}

TEST(Demo, ComparesPlainAndSpeculativeTextOfThreePromptsAtTwoTemperatures) {
  const RunResult result = demo({"--recipe", "ml-specqd"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("ml-specqd"));
  for (const char* const line : {"\ncode     0 ", "\nsum      0 ", "\nprose    0 ", "\ncode     0.8 ",
                                 "\nsum      0.8 ", "\nprose    0.8 "})
    EXPECT_THAT(result.out, HasSubstr(line));
  EXPECT_THAT(result.out, HasSubstr("the bytes agree: 72 tokens"));
}

TEST(Demo, TakesAPromptAndATemperature) {
  const RunResult result = demo({"-p", "def add(a, b):", "--temperature", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nyours    1 "));
  EXPECT_THAT(result.out, HasSubstr("the bytes agree: 12 tokens"));
}

TEST(Demo, PrintsEveryLineAsJson) {
  const RunResult result = demo({"--recipe", "ml-specqd", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json object = nlohmann::json::parse(result.out);
  EXPECT_EQ(object["recipe"], "ml-specqd");
  EXPECT_EQ(object["lossless"], true);
  ASSERT_EQ(object["lines"].size(), 6u);
  EXPECT_EQ(object["lines"][0]["kind"], "code");
  EXPECT_EQ(object["lines"][5]["temperature"], 0.8);
  for (const nlohmann::json& line : object["lines"]) {
    EXPECT_EQ(line["tokens"], 12);
    EXPECT_EQ(line["rounds"], 1);
    EXPECT_EQ(line["identical"], true);
    for (const char* const field : {"bytes", "plain_tokens_per_second", "tokens_per_second", "speedup",
                                    "acceptance_rate", "mean_accepted_length"})
      EXPECT_TRUE(line[field].is_number()) << field;
  }
}

TEST(Demo, TakesADraftModel) {
  const std::string model = test::default_model();
  const RunResult result = demo({"--recipe", "draft-model", "--draft-model", model});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("the bytes agree"));
  EXPECT_EQ(demo({"--recipe", "draft-model"}).exit_code, 2);
}

TEST(Demo, PromisesNothingOfALossyRecipe) {
  const RunResult result = demo({"--recipe", "bild", "--draft-model", test::default_model()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("the recipe bild is not lossless"));
  EXPECT_THAT(result.out, Not(HasSubstr("the bytes agree")));
}

}  // namespace
}  // namespace verbatim
