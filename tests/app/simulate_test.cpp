#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/run_program.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using nlohmann::json;
using test::expect_refused;
using test::run_program;
using test::RunResult;
using ::testing::HasSubstr;

json simulated(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "simulate");
  arguments.push_back("--json");
  const RunResult result = run_program(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return json::parse(result.out, nullptr, false);
}

TEST(SimulateCommand, SaysWhatDecodingWouldTake) {
  const RunResult result = run_program({"simulate", "--config", "llama3.2-3b", "--draft-length", "5",
                                        "--acceptance", "0.97", "--prompt", "100", "-n", "50"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("llama3.2-3b, 50 tokens after a prompt of 100, lpddr5-6400"));
  EXPECT_THAT(result.out, HasSubstr("speedup 2."));
  EXPECT_THAT(result.out, HasSubstr("chip not known"));
}

TEST(SimulateCommand, DecodesPlainlyAsFastAsTheBaseline) {
  const json plain = simulated({"--config", "vicuna-7b", "--prompt", "10", "-n", "20"});
  EXPECT_EQ(plain["speedup"], 1.0);
  EXPECT_EQ(plain["decoding"]["cycles"], plain["baseline"]["cycles"]);
  EXPECT_EQ(plain["decoding"]["passes"], 20);
  EXPECT_EQ(plain["decoding"]["draft_passes"], 0);
  EXPECT_GT(plain["decoding"]["dram_joules"], 0);
  EXPECT_TRUE(plain["baseline"]["chip_joules"].is_null());
}

TEST(SimulateCommand, CountsDroppedDraftsAsPasses) {
  const std::vector<std::string> arguments = {
      "--config", "llama3.2-3b", "--draft-length", "3", "--acceptance", "0.9", "--prompt", "10", "-n", "12"};
  const json without = simulated(arguments);
  std::vector<std::string> more = arguments;
  more.insert(more.end(), {"--dropped", "1"});
  const json with = simulated(more);
  EXPECT_EQ(with["steps"], without["steps"]);
  EXPECT_EQ(with["decoding"]["draft_passes"].get<int>(),
            without["decoding"]["draft_passes"].get<int>() + with["steps"].get<int>());
  EXPECT_LT(with["speedup"], without["speedup"]);
}

TEST(SimulateCommand, TakesWhatGenerateDid) {
  const test::TemporaryFolder folder;
  const std::string model = test::default_model();
  const std::string trace = folder.path() / "trace.jsonl";
  const RunResult generated = run_program({"generate", model, "-p", "def fibonacci(n):", "-n", "40",
                                           "--recipe", "speq", "--json", "--trace", trace});
  ASSERT_EQ(generated.exit_code, 0) << generated.err;
  const json told = json::parse(generated.out);
  const json of_trace = simulated({"--config", model, "--trace", trace});
  const json of_sums = simulated({"--config", model, "--trace", folder.write("sums.json", generated.out)});
  for (const json& one : {of_trace, of_sums}) {
    EXPECT_EQ(one["prompt_tokens"], told["prompt_tokens"]);
    EXPECT_EQ(one["steps"], told["target_passes"]);
    EXPECT_EQ(one["drafted"], told["drafted"]);
    EXPECT_EQ(one["accepted"], told["accepted"]);
    EXPECT_EQ(one["decoding"]["draft_passes"], told["draft_passes"]);
    EXPECT_GE(one["decoding"]["tokens"].get<int>(), told["generated_tokens"].get<int>() - 1);
    EXPECT_EQ(one["baseline"]["tokens"], one["decoding"]["tokens"]);
    EXPECT_GT(one["decoding"]["dram_joules"], 0);
  }
  EXPECT_GT(told["drafted"], 0);

  const std::string text = test::read_file(trace);
  expect_refused(
      {"simulate", "--config", model, "--trace", folder.write("short", text.substr(0, text.size() / 2))}, 1,
      {"cut off"});
  expect_refused({"generate", model, "-p", "x", "--trace", folder.path() / "no" / "where"}, 1,
                 {"cannot write", "where"});
}

TEST(SimulateCommand, TakesDraftsInTheArithmeticOfTheMachine) {
  const test::TemporaryFolder folder;
  const std::string model = test::default_model();
  const std::string trace = folder.path() / "trace.jsonl";
  const std::string recipe = folder.write("a16.toml",
                                          "name = \"speq-a16\"\nsummary = \"x\"\nsource = \"x\"\n[drafter]\n"
                                          "kind = \"self\"\nreading = \"bsfp-draft-a16\"\n"
                                          "stop = { length = 6, threshold = 0.3 }\n");
  const auto generate = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"generate", model, "-p",    "def fibonacci(n):", "-n", "24",
                                          "--recipe", name,  "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const RunResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out);
  };
  const json drafted = generate(recipe, {"--trace", trace});
  EXPECT_EQ(drafted["tokens"], generate("plain", {})["tokens"]);
  EXPECT_GT(drafted["accepted"], 0);
  EXPECT_EQ(simulated({"--config", model, "--trace", trace})["accepted"], drafted["accepted"]);
}

TEST(SimulateCommand, TakesThePassesOfNestedDrafters) {
  const test::TemporaryFolder folder;
  const std::string model = test::default_model();
  const std::string trace = folder.path() / "trace.jsonl";
  const RunResult generated = run_program(
      {"generate", model, "-p", "def f(", "-n", "30", "--recipe", "ml-specqd", "--json", "--trace", trace});
  ASSERT_EQ(generated.exit_code, 0) << generated.err;
  const json one = simulated({"--config", model, "--trace", trace});
  EXPECT_EQ(one["decoding"]["draft_passes"], json::parse(generated.out)["draft_passes"]);
}

TEST(SimulateCommand, RefusesBadInputInOneLine) {
  const test::TemporaryFolder folder;
  const std::string own = test::default_model() / "config.json";
  const auto refused = [&](std::vector<std::string> arguments, int code, const std::string& part) {
    arguments.insert(arguments.begin(), "simulate");
    expect_refused(arguments, code, {part});
  };
  refused({"--config", folder.path() / "absent"}, 1, "absent does not exist");
  refused({"--config", folder.write("c.json", "{\"hidden_size\": 7}")}, 1, "num_hidden_layers is missing");
  refused({"--config", own, "--hardware", "none"}, 1, "there is no machine \"none\"");
  refused({"--paper", "--config", own, "--json"}, 2, "--paper");
  for (const char* const option : {"--prompt", "-n", "--dropped"}) {
    refused({"--config", own, "--trace", "trace.jsonl", option, "3"}, 2, "--trace");
  }
  refused({"--paper", "--baseline", "fp16"}, 2, "--baseline needs --config");
  refused({"--paper", "-n", "3"}, 2, "--max-tokens needs --config");
  refused({"--config", own, "--dram", "none"}, 1, "there is no memory \"none\"");
  refused({"--config", own, "--hardware", folder.write("m.toml", "name = 3")}, 1, "name must be a string");
  refused({"--config", own, "--draft-length", "4", "--acceptance", "1.5"}, 1, "from 0 to 1, not 1.5");
  refused({"--config", own, "--trace", folder.write("t", "{\"position\":1}")}, 1,
          "line 1: the trace is cut off");
  refused({"--config", own, "--hardware", "fp16", "--draft-length", "4", "--acceptance", "0.5"}, 1,
          "no quantize mode");
  refused({"--config", own, "--draft-length", "4"}, 2, "go together");
  refused({}, 2, "--config is required");
  refused({"--config", own, "--draft-length", "nan", "--acceptance", "0.5"}, 2, "--draft-length");
}

}  // namespace
}  // namespace verbatim
