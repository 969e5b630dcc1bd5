#ifdef VERBATIM_WITH_AGENT

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/run_program.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::lines_of;
using test::run_program;
using test::RunResult;
using ::testing::HasSubstr;

const std::string kExample =
    (test::own_data().parent_path().parent_path() / "examples" / "agent" / "run.jsonl").string();

TEST(AgentCommand, ReplaysTheExampleExactly) {
  const test::TemporaryFolder folder;
  const std::string page = (folder.path() / "run.html").string();
  const RunResult result = run_program({"agent", "--replay", kExample, "--report", page});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(
      result.out,
      "The Mariana Trench would be shallower: 8748 metres (20 % less than 10,935) against 10,051 metres.\n");
  EXPECT_THAT(result.err, HasSubstr("0.942 s  6 done: 10051.199999999999"));
  EXPECT_THAT(test::read_file(page), HasSubstr("plan → join (2.034 s of the model, 0.000 s of calls)"));
  const RunResult events = run_program({"agent", "--replay", kExample, "--json"});
  EXPECT_EQ(events.out, run_program({"agent", "--replay", kExample, "--json"}).out);
  EXPECT_THAT(lines_of(events.out).back(), HasSubstr("{\"event\":\"end\",\"answer\":\"The Mariana Trench"));
}

TEST(AgentCommand, SaysWhatIsMissing) {
  EXPECT_THAT(run_program({"agent"}).err, HasSubstr("the question is empty: give it with -q TEXT"));
  EXPECT_THAT(run_program({"agent", "-q", "x"}).err,
              HasSubstr("a model is missing: name one as MODEL, or a server with --endpoint"));
  EXPECT_THAT(run_program({"agent", "-q", "x", "--endpoint", "nowhere"}).err, HasSubstr("is no address"));
  EXPECT_THAT(run_program({"agent", "-q", "x", "--endpoint", "http://127.0.0.1:1/v1"}).err,
              HasSubstr("Connection refused"));
  EXPECT_THAT(run_program({"agent", "-q", "x", "--strategy", "best"}).err,
              HasSubstr("`best` is no strategy"));
  EXPECT_EQ(run_program({"agent", "-q", "x", "--strategy", "best"}).exit_code, 2);
  EXPECT_EQ(run_program({"agent", "--replay", "/dev/null"}).exit_code, 1);
}

TEST(AgentCommand, HoldsTheOwnEnginesPlansToTheGrammar) {
  const std::string model = (test::own_data().parent_path().parent_path() / "models" / "target").string();
  const RunResult result = run_program(
      {"agent", model, "-q", "What is 2 plus 3?", "--json", "--max-seconds", "60", "--max-rounds", "1"});
  EXPECT_EQ(result.out.find("\"event\":\"wrong\""), std::string::npos) << result.out;
  EXPECT_THAT(result.out, HasSubstr("\"event\":\"replied\""));
}

}  // namespace
}  // namespace verbatim

#endif
