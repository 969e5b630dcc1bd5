#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"
#include "support/run_program.h"
#include "support/test_data.h"

namespace verbatim {
namespace strict_options_test {
namespace {

using test::lines_of;
using test::RunResult;
using ::testing::HasSubstr;

constexpr int kUsageExit = 2;

void expect_generate_refuses(const std::vector<std::string>& options, const std::string& part) {
  std::vector<std::string> arguments = {"generate", test::draft_model(), "-p", "x"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  test::expect_refused(arguments, kUsageExit, {part});
}

TEST(NumberOnTheCommandLine, IsFiniteAndInDecimal) {
  expect_generate_refuses({"--draft-threshold", "nan"}, "nan");
  expect_generate_refuses({"--temperature", "inf"}, "inf");
  expect_generate_refuses({"--temperature", "0x1p3"}, "\"0x1p3\" should be a number");
  expect_generate_refuses({"-n", "0x10"}, "\"0x10\" should be a whole number");
  expect_generate_refuses({"--top-k", "1e3"}, "\"1e3\" should be a whole number");
}

TEST(NumberOnTheCommandLine, IsNeverBentToFit) {
  expect_generate_refuses({"--seed", "18446744073709551616"}, "18446744073709551616");
  expect_generate_refuses({"--seed", "-1"}, "\"-1\" should be a whole number from 0");
  expect_generate_refuses({"-n", "99999999999999999999"}, "99999999999999999999");
}

TEST(ValueOnTheCommandLine, IsNotEmpty) {
  for (const char* option : {"--temperature", "--seed", "--top-k", "--recipe", "--cache", "--draft-model"}) {
    expect_generate_refuses({option, ""}, option);
    expect_generate_refuses({std::string(option) + "="}, option);
  }
}

TEST(ListOnTheCommandLine, HasNoEmptyItem) {
  for (const char* list : {",", "bf16,", ",bf16", "bf16,,mxfp4"}) {
    test::expect_refused({"pack", test::draft_model(), "--formats", list}, kUsageExit, {"--formats"});
    test::expect_refused({"pack", test::draft_model(), std::string("--formats=") + list}, kUsageExit,
                         {"--formats"});
  }
}

TEST(CacheOnTheCommandLine, SetsEveryOptionOnce) {
  expect_generate_refuses({"--cache", "hierarchical:bits=4,bits=4"}, "bits");
}

TEST(WrongUsage, HasAnExitCodeOfItsOwnWhateverIsWrong) {
  test::expect_refused({"generate", test::draft_model()}, kUsageExit, {"the prompt is empty"});
  expect_generate_refuses({"--cache", "BF16"}, "unknown cache \"BF16\"");
  expect_generate_refuses({"--formats", "nope"}, "unknown format \"nope\"");
  expect_generate_refuses({"--recipe", "nope"}, "no recipe \"nope\"");
}

TEST(WrongUsage, IsSaidInALineOfBoundedLengthThatIsUtf8) {
  for (const std::string& value : {std::string(5000, 'a'), std::string("\xff\xfe")}) {
    const RunResult result =
        test::run_program({"generate", test::draft_model(), "-p", "x", "--recipe", value});
    EXPECT_EQ(result.exit_code, kUsageExit);
    EXPECT_LT(result.err.size(), 1200u);
    EXPECT_EQ(lines_of(result.err).size(), 1u);
    EXPECT_EQ(find_invalid_utf8(result.err), std::string_view::npos);
  }
}

}  // namespace
}  // namespace strict_options_test
}  // namespace verbatim
