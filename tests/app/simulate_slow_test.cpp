#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/run_program.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::expect_refused;
using test::run_program;
using test::RunResult;
using ::testing::HasSubstr;

TEST(SimulateWithThePaper, WritesAPage) {
  const test::TemporaryFolder folder;
  const std::string page = folder.path() / "page.html";
  test::RunOptions options;
  options.seconds = 600;
  const RunResult result = run_program(
      {"simulate", "--config", "llama3.2-3b", "-n", "2", "--prompt", "4", "--report", page}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(test::read_file(page), HasSubstr("figure 9"));
  EXPECT_THAT(test::read_file(page), HasSubstr("Roofline"));
  EXPECT_THAT(result.out, ::testing::Not(HasSubstr("Tables II and III")));
  expect_refused({"simulate", "--config", "llama3.2-3b", "--report", folder.path() / "no" / "page"}, 1,
                 {"cannot write"});
}

TEST(SimulateWithThePaper, PrintsItsTablesBesideOurs) {
  test::RunOptions options;
  options.seconds = 600;
  const test::TemporaryFolder folder;
  const std::string page = folder.path() / "page.html";
  const RunResult result = run_program({"simulate", "--paper", "--report", page}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* const part : {"Tables II and III", "Figures 7 and 8", "by mapping and bandwidth",
                                 "Figure 9, vicuna-7b", "Table IV", "Sensitivity"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
  EXPECT_THAT(test::read_file(page), HasSubstr("figure 9"));
  EXPECT_THAT(test::read_file(page), ::testing::Not(HasSubstr("Roofline")));
  // What docs/accelerator.md says of table III.
  const size_t nearest = result.out.find("nearest to (0.357, 1)");
  ASSERT_NE(nearest, std::string::npos);
  EXPECT_THAT(result.out.substr(nearest, 120), HasSubstr("tiles share rows"));
}

}  // namespace
}  // namespace verbatim
