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
  refused({"--config", own, "--dram", "none"}, 1, "there is no memory \"none\"");
  refused({"--config", own, "--hardware", folder.write("m.toml", "name = 3")}, 1, "name must be a string");
  refused({"--config", own, "--draft-length", "4", "--acceptance", "1.5"}, 1, "from 0 to 1, not 1.5");
  refused({"--config", own, "--trace", folder.write("t", "{\"position\":1}")}, 1, "line 1: the trace is cut off");
  refused({"--config", own, "--hardware", "fp16", "--draft-length", "4", "--acceptance", "0.5"}, 1,
          "no quantize mode");
  refused({"--config", own, "--draft-length", "4"}, 2, "go together");
  refused({}, 2, "--config is required");
  refused({"--config", own, "--draft-length", "nan", "--acceptance", "0.5"}, 2, "--draft-length");
}

}  // namespace
}  // namespace verbatim
