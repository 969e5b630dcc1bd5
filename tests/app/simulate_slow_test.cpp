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
  expect_refused({"simulate", "--config", "llama3.2-3b", "--report", folder.path() / "no" / "page"}, 1,
                 {"cannot write"});
}

TEST(SimulateWithThePaper, PrintsItsTablesBesideOurs) {
  test::RunOptions options;
  options.seconds = 600;
  const RunResult result = run_program({"simulate", "--paper"}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* const part :
       {"Tables II and III", "Figures 7 and 8", "by mapping and bandwidth", "Table IV", "Sensitivity"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
  // What docs/accelerator.md says of table III.
  const size_t nearest = result.out.find("nearest to (0.357, 1)");
  ASSERT_NE(nearest, std::string::npos);
  EXPECT_THAT(result.out.substr(nearest, 120), HasSubstr("tiles share rows"));
}

}  // namespace
}  // namespace verbatim
