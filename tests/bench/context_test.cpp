#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "bench/run_bench.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using nlohmann::json;
using test::lines_of;
using test::run_bench;
using test::RunResult;
using ::testing::HasSubstr;

TEST(BenchContext, MeasuresAcceptanceOnTextAndCostsAtAnyLength) {
  const test::TemporaryFolder folder;
  std::string long_text;
  for (int i = 0; i < 28; ++i) long_text += "def add_" + std::to_string(i) + "(a, b): return a + b; ";
  // One prompt ends within the buffer, the other beyond it.
  const auto prompts = folder.write("prompts.jsonl", R"({"prompt": "def add(a, b):\n    return"})"
                                                     "\n" +
                                                         json{{"prompt", long_text}}.dump() + "\n");
  const auto figures = folder.path() / "figures";
  const RunResult result = run_bench({"context", test::default_model(), "--prompts", prompts, "-n", "12",
                                      "--contexts", "300,5000", "--lengths", "1,3", "--seconds", "0",
                                      "--ignore-eos", "--threads", "2", "-o", figures, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json object = json::parse(result.out);
  ASSERT_EQ(object["acceptance"].size(), 3u);
  for (const json& one : object["acceptance"]) {
    EXPECT_LE(one["survival_by_depth"].size(), 6u) << "the recipes' own length";
    EXPECT_EQ(one["share_beyond_buffer"], 0.5);
  }
  ASSERT_EQ(object["results"].size(), 6u);
  for (const json& one : object["results"]) {
    EXPECT_TRUE(one["length"] == 1 || one["length"] == 3 || one["length"] == 6);
    EXPECT_EQ(one["length_shipped"], 6);
    EXPECT_LE(one["speedup_shipped"], one["speedup"]);
    for (const char* field :
         {"seconds_plain", "seconds_draft", "seconds_verify", "speedup", "speedup_shipped"}) {
      EXPECT_GT(one[field], 0.0);
    }
    EXPECT_GE(one["tokens_per_step"], 1.0);
    EXPECT_EQ(one["caches_in_turns"], true);
    if (one["context"] == 5000) {
      EXPECT_LT(one["cache_bytes"].get<double>(), 0.7 * one["plain_cache_bytes"].get<double>());
    }
  }
  EXPECT_TRUE(std::filesystem::exists(figures / "contexts.svg"));
  EXPECT_TRUE(std::filesystem::exists(figures / "contexts.json"));
}

TEST(BenchContext, TakesAcceptanceFromAnEarlierRun) {
  const test::TemporaryFolder folder;
  const auto run = [&](const std::string& text, const char* lengths) {
    const auto file = folder.write("contexts.json", text);
    return run_bench({"context", test::default_model(), "--recipes", "quantspec", "--acceptance", file,
                      "--contexts", "300", "--lengths", lengths, "--seconds", "0", "--json"});
  };
  const std::string known = R"({"acceptance": [{"recipe": "other", "survival_by_depth": []},
      {"recipe": "quantspec", "survival_by_depth": [1, 0.5, 0, 0, 0, 0], "share_beyond_buffer": 0.25}]})";
  const RunResult result = run(known, "2");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json object = json::parse(result.out);
  EXPECT_EQ(object["results"].at(0)["tokens_per_step"], 2.5);
  EXPECT_EQ(object["acceptance"].at(0)["survival_by_depth"], (std::vector<double>{1.0, 0.5, 0, 0, 0, 0}));
  EXPECT_EQ(object["acceptance"].at(0)["share_beyond_buffer"], 0.25);
  EXPECT_FALSE(object.contains("temperature")) << "nothing was decoded";

  const auto expect_refused = [&](const std::string& text, const char* lengths, const char* what) {
    const RunResult refused = run(text, lengths);
    EXPECT_NE(refused.exit_code, 0) << text;
    ASSERT_EQ(lines_of(refused.err).size(), 1u) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(what));
  };
  expect_refused(known, "1,8", "6 tokens deep where 8");
  expect_refused("{}", "1", "holds no acceptance");
  expect_refused(R"({"acceptance": [3, {"recipe": 4}]})", "1", "quantspec is not there");
  expect_refused(R"({"acceptance": [{"recipe": "quantspec"}]})", "1", "survival_by_depth is missing");
  expect_refused(R"({"acceptance": [{"recipe": "quantspec", "survival_by_depth": [2]}]})", "1",
                 "from 0 to 1");
  expect_refused(R"({"acceptance": [{"recipe": "quantspec", "survival_by_depth": [1, 1, 1, 1, 1, 1],
                     "share_beyond_buffer": "all"}]})",
                 "1", "share_beyond_buffer should be from 0 to 1");
  expect_refused("[", "1", "contexts.json");
}

// What was measured before would be lost.
TEST(BenchContext, RefusesContextsThatDoNotFitBeforeItDecodes) {
  const test::TemporaryFolder folder;
  test::TinyModelOptions model;  // 1 TiB of keys and values at 4 million positions
  model.hidden_size = 32;
  model.intermediate_size = 32;
  model.layers = 16;
  model.kv_heads = 32;
  model.heads = 32;
  model.head_dim = 128;
  model.vocab_size = 4096;
  test::write_tiny_llama(folder.path() / "model", model);
  for (const char* file : {"tokenizer.model", "tokenizer_config.json"}) {
    std::filesystem::copy_file(test::default_model() / file, folder.path() / "model" / file);
  }
  const auto prompts = folder.write("prompts.jsonl", R"({"prompt": "a"})"
                                                     "\n");
  const auto figures = folder.path() / "figures";
  const auto start = std::chrono::steady_clock::now();
  const RunResult result =
      run_bench({"context", folder.path() / "model", "--prompts", prompts, "-n", "8", "--contexts",
                 "300,4194304", "--recipes", "snapkv", "--seconds", "100", "-o", figures});
  EXPECT_EQ(result.exit_code, 3);
  ASSERT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_THAT(result.err, HasSubstr("4194304 tokens takes"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(150)) << "it measured 300 first";
  EXPECT_FALSE(std::filesystem::exists(figures));
}

TEST(BenchContext, WantsEitherPromptsOrAcceptance) {
  const RunResult result = run_bench({"context", test::default_model()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--acceptance"));
}

TEST(BenchContext, TakesOnlyRecipesThatDraftWithTheModelItself) {
  const test::TemporaryFolder folder;
  const auto prompts = folder.write("prompts.jsonl", R"({"prompt": "def"})"
                                                     "\n");
  const RunResult result =
      run_bench({"context", test::default_model(), "--prompts", prompts, "--recipes", "ngram"});
  EXPECT_EQ(result.exit_code, 2);
  ASSERT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_THAT(result.err, HasSubstr("ngram"));
}

}  // namespace
}  // namespace verbatim
