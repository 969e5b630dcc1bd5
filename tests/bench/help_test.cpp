#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/run_bench.h"

namespace verbatim {
namespace {

using test::lines_of;
using test::run_bench;
using test::RunResult;
using ::testing::HasSubstr;

void expect_help(const std::vector<std::string>& arguments, const std::string& example) {
  SCOPED_TRACE(example);
  const RunResult result = run_bench(arguments);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("Example"));
  EXPECT_THAT(result.out, HasSubstr("\n  " + example));
  for (const std::string& line : lines_of(result.out)) EXPECT_LE(line.size(), 120u) << line;
}

TEST(BenchHelp, HasExamples) {
  expect_help({"--help"}, "verbatim-bench kernels");
  for (const std::string command :
       {"kernels", "passes", "attention", "context", "sweep", "drafting", "texts"}) {
    expect_help({command, "--help"}, "verbatim-bench " + command);
  }
}

}  // namespace
}  // namespace verbatim
