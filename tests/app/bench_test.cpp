#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/run_program.h"

namespace verbatim {
namespace {

using test::expect_refused;
using test::lines_of;
using test::run_program;
using test::RunResult;
using ::testing::HasSubstr;

TEST(Bench, SaysInOneLineWhatIsWrong) {
  expect_refused({"bench"}, 2, {"a command is missing (`verbatim bench --help`"});
  expect_refused({"bench", "pots"}, 2, {"there is no command or option pots"});
}

TEST(Bench, HelpHasExamples) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"bench", "--help"},
                                                  {"bench", "decode", "--help"},
                                                  {"bench", "throughput", "--help"}}) {
    const RunResult result = run_program(command);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, HasSubstr("Example"));
    EXPECT_THAT(result.out,
                HasSubstr("\n  verbatim bench " + (command.size() > 2 ? command[1] : std::string("decode"))));
    for (const std::string& line : lines_of(result.out)) EXPECT_LE(line.size(), 120u) << line;
  }
}

}  // namespace
}  // namespace verbatim
