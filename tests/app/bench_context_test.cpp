#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <set>

#include "support/run_program.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using nlohmann::json;
using test::lines_of;
using test::run_program;
using test::RunResult;
using ::testing::HasSubstr;

TEST(BenchAttention, ComparesEveryCacheWithBf16) {
  const RunResult result =
      run_program({"bench", "attention", "--quick", "--contexts", "1000", "--groups", "1,3", "--head-dim",
                   "40", "--kv-heads", "2", "--threads", "2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json object = json::parse(result.out);
  EXPECT_EQ(object["head_dim"], 40);
  EXPECT_GT(object["read_bandwidth_gbs"], 0.0);
  std::set<std::string> kinds;
  for (const json& one : object["results"]) {
    kinds.insert(one["cache"].get<std::string>() + " " + one["reading"].get<std::string>());
    for (const char* field : {"seconds", "gbs", "fraction_of_bandwidth", "speedup"})
      EXPECT_GT(one[field], 0.0);
    if (one["cache"] == "bf16") {
      EXPECT_EQ(one["speedup"], 1.0);
    }
  }
  EXPECT_EQ(object["results"].size(), 10u);
  EXPECT_EQ(kinds, (std::set<std::string>{"bf16 full", "f16 full", "hierarchical draft", "hierarchical full",
                                          "int8 full"}));
}

TEST(BenchAttention, RefusesContextsThatDoNotFit) {
  const RunResult result = run_program(
      {"bench", "attention", "--quick", "--contexts", "4194304", "--kv-heads", "256", "--head-dim", "256"});
  EXPECT_EQ(result.exit_code, 3);
  ASSERT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_THAT(result.err, HasSubstr("4194304 tokens takes"));
}

TEST(BenchContext, MeasuresAcceptanceOnTextAndCostsAtAnyLength) {
  const test::TemporaryFolder folder;
  std::string long_text;
  for (int i = 0; i < 28; ++i) long_text += "def add_" + std::to_string(i) + "(a, b): return a + b; ";
  // One prompt ends within the buffer, the other beyond it.
  const auto prompts = folder.write("prompts.jsonl", R"({"prompt": "def add(a, b):\n    return"})"
                                                     "\n" +
                                                         json{{"prompt", long_text}}.dump() + "\n");
  const auto figures = folder.path() / "figures";
  const RunResult result = run_program({"bench", "context", test::default_model(), "--prompts", prompts, "-n",
                                        "12", "--contexts", "300,5000", "--lengths", "1,3", "--seconds", "0",
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
    return run_program({"bench", "context", test::default_model(), "--recipes", "quantspec", "--acceptance",
                        file, "--contexts", "300", "--lengths", lengths, "--seconds", "0", "--json"});
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
      run_program({"bench", "context", folder.path() / "model", "--prompts", prompts, "-n", "8", "--contexts",
                   "300,4194304", "--recipes", "snapkv", "--seconds", "100", "-o", figures});
  EXPECT_EQ(result.exit_code, 3);
  ASSERT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_THAT(result.err, HasSubstr("4194304 tokens takes"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(150)) << "it measured 300 first";
  EXPECT_FALSE(std::filesystem::exists(figures));
}

TEST(BenchContext, WantsEitherPromptsOrAcceptance) {
  const RunResult result = run_program({"bench", "context", test::default_model()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--acceptance"));
}

TEST(BenchContext, TakesOnlyRecipesThatDraftWithTheModelItself) {
  const test::TemporaryFolder folder;
  const auto prompts = folder.write("prompts.jsonl", R"({"prompt": "def"})"
                                                     "\n");
  const RunResult result =
      run_program({"bench", "context", test::default_model(), "--prompts", prompts, "--recipes", "ngram"});
  EXPECT_EQ(result.exit_code, 2);
  ASSERT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_THAT(result.err, HasSubstr("ngram"));
}

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
