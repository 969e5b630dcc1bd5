#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/run_program.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using nlohmann::json;
using test::lines_of;
using test::run_program;
using test::RunResult;

TEST(CacheOption, IsToldAndRefusedWhereUnknown) {
  const RunResult result = run_program({"generate", test::default_model(), "-p", "def", "-n", "3", "--recipe",
                                        "quantspec", "--cache", "hierarchical:group=64", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(json::parse(result.out)["cache"], "hierarchical:group=64");
  for (const char* cache : {"fp8", "hierarchical:group=7", "hierarchical:size=1"}) {
    const RunResult refused =
        run_program({"generate", test::default_model(), "-p", "def", "-n", "3", "--cache", cache});
    EXPECT_NE(refused.exit_code, 0) << cache;
    EXPECT_EQ(lines_of(refused.err).size(), 1u) << refused.err;
    EXPECT_EQ(refused.out, "");
  }
}

TEST(EvalPerplexity, MeasuresWhatACacheChanges) {
  TOO_LONG_FOR_SANITIZERS();
  const test::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 120; ++i) text += "def add_" + std::to_string(i) + "(a, b):\n    return a + b\n";
  const auto file = folder.write("text.py", text);
  const auto measure = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"eval", "perplexity", test::default_model(), file, "--compare-with",
                                          "full", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const RunResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out);
  };
  EXPECT_EQ(measure({})["excess_nll"], 0.0);
  EXPECT_EQ(measure({})["divergence"], 0.0);
  const json both = measure({"--cache", "hierarchical"});
  EXPECT_EQ(both["cache"], "hierarchical");
  EXPECT_NE(both["excess_nll"], 0.0);
  EXPECT_GT(both["overlap"], 0.99);
  const json draft = measure({"--cache", "hierarchical", "--draft-cache"});
  EXPECT_LT(draft["overlap"], both["overlap"]);
  EXPECT_GT(draft["divergence"], both["divergence"]);
  EXPECT_GT(both["divergence"], 0.0);
}

}  // namespace
}  // namespace verbatim
