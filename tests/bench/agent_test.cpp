#ifdef VERBATIM_WITH_AGENT

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/run_bench.h"
#include "support/environment.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::expect_usage_error;
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

/// What `--plans` prints of the default model's plans for questions of a folder.
nlohmann::json plans_for(const std::string& folder, const std::string& questions) {
  const RunResult result = run_bench({"agent", "--json", "--plans", test::default_model().string(), "--data",
                                      folder, "--questions", questions});
  EXPECT_EQ(result.exit_code, 0) << result.err;  // which says that all are valid, and the same
  return nlohmann::json::parse(result.out);
}

// The default model is far too small for good plans, and these tests say nothing of that.
TEST(BenchAgent, HoldsPlansOfTheDefaultModelToTheGrammar) {
  const test::TemporaryFolder folder;
  folder.write("parallelqa_dataset.json",
               R"([{"question": "Which is higher, Mount Ash or Mount Birch?", "answer": "", "branch": 2},
                   {"question": "How many miles are 3 km?", "answer": "", "branch": 2},
                   {"question": "Never asked", "answer": "", "branch": 2}])");
  const nlohmann::json plans = plans_for(folder.path().string(), "2");
  EXPECT_EQ(plans["plans"], 4);
  EXPECT_EQ(plans["valid"], 4);
  EXPECT_EQ(plans["same"], 4);
  EXPECT_GT(plans["calls"], 0);
  EXPECT_GT(plans["structure_tokens"], 0);
}

TEST(BenchAgent, RefusesOptionsThatPlansPassOver) {
  for (const char* const option : {"--rate", "--prompt-rate", "--search", "--slowest", "--math"})
    expect_usage_error({"agent", "--plans", "models/target", option, "1"}, option);
  expect_usage_error({"agent", "--plans", "models/target", "--simulated"}, "--simulated");
  expect_usage_error({"agent", "--plans", "models/target"}, "--data");
}

TEST(PublicBenchAgent, HoldsPlansOfTheDefaultModelToTheGrammar) {
  const char* const data = std::getenv("VERBATIM_TEST_DATA");
  if (!data) GTEST_SKIP() << "VERBATIM_TEST_DATA is not set";
  const nlohmann::json plans = plans_for(std::string(data) + "/agent", "5");
  EXPECT_EQ(plans["valid"], 10);
  EXPECT_EQ(plans["same"], 10);
  EXPECT_GT(plans["calls"], 0);
  EXPECT_GT(plans["structure_share"], 0.1);
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
