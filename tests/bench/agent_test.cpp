#ifdef VERBATIM_WITH_AGENT

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/run_bench.h"
#include "support/environment.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::lines_of;
using test::run_bench;
using test::RunResult;

TEST(BenchAgent, MeasuresWhatTheOrchestratorTakesAndPlaysGames) {
  const RunResult result = run_bench({"agent", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(nlohmann::json::parse(lines[5])["calls"], 32);
  const auto game = nlohmann::json::parse(lines[6]);
  EXPECT_EQ(game["hands"], 1362);
  EXPECT_EQ(game["solved"], 100);
  EXPECT_EQ(game["same_answers"], 100);
  EXPECT_GT(game["speedup"].get<double>(), 1.5);
  // Tree of Thoughts has neither a planner nor a joiner, so it is a little faster than the same calls
  // planned.
  EXPECT_LT(game["seconds"]["tree_of_thoughts"], game["seconds"]["one_by_one"]);
}

TEST(PublicBenchAgent, AgreesWithTheLatencyModel) {
  const char* const data = std::getenv("VERBATIM_TEST_DATA");
  if (!data) GTEST_SKIP() << "VERBATIM_TEST_DATA is not set";
  const RunResult result = run_bench({"agent", "--json", "--data", std::string(data) + "/agent"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  int sets = 0;
  for (const std::string& line : lines_of(result.out)) {
    const auto json = nlohmann::json::parse(line);
    if (!json.contains("worst_against_formula")) continue;
    ++sets;
    EXPECT_LT(json["worst_against_formula"].get<double>(), 0.05);
    EXPECT_GT(json["speedup"].get<double>(), 1.8);
    EXPECT_GE(json["streaming"].get<double>(), 1.0);
    EXPECT_GT(json["input_reduced"].get<double>(), 2.0);
    for (const char* const formula : {"d4", "d5", "d6"}) {
      const double says = json[formula]["formula"].get<double>();
      EXPECT_NEAR(json[formula]["measured"].get<double>(), says, 0.02 * says) << formula;
    }
  }
  EXPECT_EQ(sets, 3);
}

}  // namespace
}  // namespace verbatim

#endif
