#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(Demo, ComparesPlainAndSpeculativeText) {
  const RunResult result = demo({"--recipe", "ml-specqd"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("\nplain "));
  EXPECT_THAT(result.out, HasSubstr("\nml-specqd "));
  EXPECT_THAT(result.out, HasSubstr("the bytes agree: 12 tokens"));
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
