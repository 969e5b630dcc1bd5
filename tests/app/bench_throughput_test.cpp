#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/run_program.h"
#include "support/test_data.h"

namespace verbatim {
namespace bench_throughput_test {
namespace {

using nlohmann::json;
using test::run_program;
using test::RunResult;
using ::testing::HasSubstr;

const char* const kPrompts = R"({"prompt": "def add(a, b):\n    "}
{"prompt": "import os\n"}
{"prompt": "class Stack:\n"}
)";

/// Of two recipes at two batches, which draft where it pays or always.
void expect_cells(bool every_draft) {
  const test::TemporaryFolder folder;
  const auto prompts = folder.write("some.jsonl", kPrompts);
  std::vector<std::string> arguments = {"bench",     "throughput", test::default_model(),
                                        "--prompts", prompts,      "--recipes",
                                        "ml-specqd", "--batch",    "1,4",
                                        "-n",        "12",         "--threads",
                                        "2",         "--json"};
  if (every_draft) arguments.emplace_back("--every-draft");
  const RunResult result = run_program(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json object = json::parse(result.out);
  EXPECT_EQ(object["weights"], "trained");
  EXPECT_EQ(object["baseline"], "plain");
  EXPECT_EQ(object["weigh_drafts"], !every_draft);
  ASSERT_EQ(object["results"].size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    const json& cell = object["results"][i];
    const bool plain = i % 2 == 0;
    EXPECT_EQ(cell["recipe"], plain ? "plain" : "ml-specqd");
    EXPECT_EQ(cell["batch"], i < 2 ? 1 : 4);
    EXPECT_EQ(cell["requests"], i < 2 ? 2 : 8);
    EXPECT_GT(cell["tokens_per_second"], 0.0);
    EXPECT_TRUE(cell["identical"]);
    EXPECT_GT(cell["verify"]["count"], 0);
    EXPECT_GT(cell["cache_waste"], 0.0);
    EXPECT_LT(cell["cache_waste"], 1.0);
    if (plain) {
      EXPECT_EQ(cell["draft"]["count"], 0);
      EXPECT_EQ(cell["speedup"], 1.0);
    } else if (every_draft || cell["batch"] == 1) {  // whether drafts pay in a batch is the machine's affair
      EXPECT_GT(cell["draft"]["count"], 0);
      EXPECT_GT(cell["acceptance_rate"], 0.3);
    }
  }
  EXPECT_GT(object["results"][2]["verify"]["rows_per_pass"], object["results"][0]["verify"]["rows_per_pass"]);
}

TEST(BenchThroughput, MeasuresEveryRecipeAtEveryBatch) {
  expect_cells(false);
}

TEST(BenchThroughput, DraftsAlwaysWhenAskedTo) {
  expect_cells(true);
}

TEST(BenchThroughput, PrintsATableForPeople) {
  const test::TemporaryFolder folder;
  const auto prompts = folder.write("some.jsonl", kPrompts);
  const RunResult result =
      run_program({"bench", "throughput", test::default_model(), "--prompts", prompts, "--recipes", "ngram",
                   "--batch", "2", "-n", "8", "--refills", "1", "--prompt-tokens", "3", "--rounds", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("batch 2, 2 requests"));
  EXPECT_THAT(result.out, HasSubstr("ngram"));
}

TEST(BenchThroughput, RefusesWhatItCannotMeasure) {
  const test::TemporaryFolder folder;
  const auto prompts = folder.write("some.jsonl", kPrompts);
  test::expect_refused(
      {"bench", "throughput", test::default_model(), "--prompts", prompts, "--recipes", "nope"}, 2, {"nope"});
  test::expect_refused({"bench", "throughput", test::default_model(), "--prompts", prompts, "--recipes",
                        "plain", "--batch", "0"},
                       2, {"--batch"});
}

}  // namespace
}  // namespace bench_throughput_test
}  // namespace verbatim
