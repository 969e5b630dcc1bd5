#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/format.h"
#include "support/run_program.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using nlohmann::json;
using test::lines_of;
using test::run_program;
using test::RunOptions;
using test::RunResult;
using ::testing::HasSubstr;

std::vector<std::string> quick(std::vector<std::string> more) {
  more.insert(more.begin(), {"bench", "kernels", "--quick", "--threads", "2"});
  return more;
}

json bench_json(std::vector<std::string> more, const RunOptions& options = {}) {
  more.push_back("--json");
  const RunResult result = run_program(quick(more), options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return json::parse(result.out);
}

void expect_usage_error(const std::vector<std::string>& arguments, const std::string& part) {
  SCOPED_TRACE(part);
  const RunResult result = run_program(arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  ASSERT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_THAT(result.err, HasSubstr(part));
}

TEST(BenchKernels, MeasuresEveryReading) {
  const json object = bench_json({"--shapes", "64x64", "--rows", "1"});
  EXPECT_FALSE(object["cpu"].get<std::string>().empty());
  EXPECT_FALSE(object["isa"].get<std::string>().empty());
  EXPECT_EQ(object["threads"], 2);
  EXPECT_GT(object["read_bandwidth_gbs"], 0.0);
  EXPECT_GT(object["peak_bf16_tflops"], 0.0);
  std::vector<std::string> readings;
  for (const json& result : object["results"]) {
    readings.push_back(result["format"].get<std::string>() + " " + result["reading"].get<std::string>());
    SCOPED_TRACE(readings.back());
    EXPECT_EQ(result["rows"], 1);
    EXPECT_EQ(result["n"], 64);
    EXPECT_EQ(result["k"], 64);
    EXPECT_GE(result["rounds"], 3);
    for (const char* field : {"seconds", "gbs", "read_bandwidth_gbs", "fraction_of_bandwidth", "tflops"}) {
      EXPECT_GT(result[field], 0.0) << field;
    }
    EXPECT_LT(result["seconds"], 1.0);
  }
  std::vector<std::string> expected;
  for (const Format format : all_formats()) {
    for (const Reading reading : verbatim::readings(format)) {
      expected.push_back(std::string(format_name(format)) + " " + std::string(reading_name(reading)));
    }
  }
  EXPECT_EQ(readings, expected);
}

TEST(BenchKernels, CountsTheBytesOfTheFormatAndTheOperations) {
  // Sizes that need padding: 100 outputs are stored as 112, 70 inputs as 96.
  const json object = bench_json({"--shapes", "100x70", "--rows", "3", "--formats", "f32,mxfp4"});
  for (const json& result : object["results"]) {
    const double seconds = result["seconds"];
    const double bits = result["format"] == "f32" ? 32 : 4.25;
    EXPECT_NEAR(result["gbs"].get<double>() * seconds * 1e9, 112 * 96 * bits / 8, 1e-3);
    EXPECT_NEAR(result["tflops"].get<double>() * seconds * 1e12, 2 * 3 * 100 * 70, 1e-3);
  }
}

TEST(BenchKernels, TakesListsAndFilters) {
  const json object = bench_json(
      {"--shapes", "32x64,48x32", "--rows", "1,5", "--formats", "bf16,mxfp4", "--readings", "mxfp4-w4a8"});
  ASSERT_EQ(object["results"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const json& result = object["results"][i];
    EXPECT_EQ(result["reading"], "mxfp4-w4a8");
    EXPECT_EQ(result["n"], i < 2 ? 32 : 48);
    EXPECT_EQ(result["rows"], i % 2 == 0 ? 1 : 5);
  }
}

TEST(BenchKernels, PrintsATable) {
  const RunResult result = run_program(quick({"--shapes", "64x32", "--rows", "2", "--formats", "bf16"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char* part :
       {"2 threads; random weights", "read bandwidth", "64 x 32", "GB/s", "bf16             bf16 "}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(BenchKernels, HonoursTheForcedMachinePath) {
  RunOptions options;
  options.environment = {{"VERBATIM_ISA", "scalar"}};
  EXPECT_EQ(bench_json({"--shapes", "32x32", "--rows", "1", "--formats", "bf16"}, options)["isa"], "scalar");
}

TEST(BenchKernels, SaysInOneLineWhatIsWrong) {
  expect_usage_error({"bench"}, "a command is missing (`verbatim bench --help`");
  expect_usage_error({"bench", "pots"}, "there is no command or option pots");
  expect_usage_error({"bench", "kernels", "--loud"}, "(`verbatim bench kernels --help`");
  expect_usage_error(quick({"--formats", "bf16,int9"}), "there is no format \"int9\"; known are bf16, ");
  expect_usage_error(quick({"--readings", "half"}), "there is no reading \"half\"; known are bf16, ");
  expect_usage_error(quick({"--formats", "bf16", "--readings", "mxfp4-w4a8"}), "mxfp4-w4a8");
  for (const char* shape : {"64", "64x", "x64", "64x64x64", "0x64", "-1x64", "64x1e3", "99999999x99999999",
                            "99999999999999999999x1"}) {
    expect_usage_error(quick({"--shapes", shape}), shape);
  }
  expect_usage_error(quick({"--rows", "0"}), "--rows");
  expect_usage_error(quick({"--rows", "1,many"}), "many");
  expect_usage_error(quick({"--threads", "0"}), "--threads");
}

std::vector<std::string> quick_passes(std::vector<std::string> more) {
  more.insert(more.begin(), {"bench", "passes", test::default_model().string(), "--quick", "--threads", "2"});
  return more;
}

json passes_json(std::vector<std::string> more) {
  more.push_back("--json");
  const RunResult result = run_program(quick_passes(more));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return json::parse(result.out);
}

TEST(BenchPasses, MeasuresRowsAndPrefill) {
  const json object = passes_json({"--rows", "1,3", "--context", "5", "--prompt-tokens", "40"});
  EXPECT_EQ(object["model"], test::default_model().string());
  EXPECT_FALSE(object["cpu"].get<std::string>().empty());
  EXPECT_FALSE(object["isa"].get<std::string>().empty());
  EXPECT_EQ(object["threads"], 2);
  EXPECT_EQ(object["tokens"], "arbitrary");
  EXPECT_EQ(object["formats"], json({"bf16"}));
  EXPECT_EQ(object["reading"], "full");
  EXPECT_EQ(object["readings"], json({"bf16"}));
  EXPECT_EQ(object["context"], 5);
  EXPECT_GT(object["read_bandwidth_gbs"], 0.0);
  const double bytes = object["weight_bytes"];
  ASSERT_EQ(object["passes"].size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const json& pass = object["passes"][i];
    EXPECT_EQ(pass["rows"], i == 0 ? 1 : 3);
    EXPECT_GE(pass["rounds"], 3);
    const double seconds = pass["seconds"];
    EXPECT_GT(seconds, 0.0);
    EXPECT_NEAR(pass["gbs"].get<double>() * seconds * 1e9, bytes, 1.0);
    EXPECT_GT(pass["read_bandwidth_gbs"], 0.0);
    EXPECT_GT(pass["fraction_of_bandwidth"], 0.0);
    EXPECT_GT(pass["ratio_to_one_row"], 0.0);
  }
  EXPECT_EQ(object["passes"][0]["ratio_to_one_row"], 1.0);
  const json& prefill = object["prefill"];
  EXPECT_EQ(prefill["tokens"], 40);
  EXPECT_GE(prefill["rounds"], 3);
  const double seconds = prefill["seconds"];
  EXPECT_GT(seconds, 0.0);
  EXPECT_NEAR(prefill["tokens_per_second"].get<double>() * seconds, 40.0, 1e-6);
  EXPECT_GT(prefill["tflops"], 0.0);
}

// The default model: hidden 512, inner 1408, 8 layers, 8 heads and 4 key-value heads of 64, vocabulary 4096.
// None of its matrices needs padding.
constexpr double kLayerWeights = 512.0 * (512 + 2 * 256) + 512.0 * 512 + 512.0 * 2 * 1408 + 1408.0 * 512;
constexpr double kHeadWeights = 4096.0 * 512;

TEST(BenchPasses, CountsTheBytesOfTheReadingAndTheOperationsOfThePrefill) {
  const json bf16 = passes_json({"--rows", "1", "--prompt-tokens", "20"});
  EXPECT_EQ(bf16["weight_bytes"], 2 * (8 * kLayerWeights + kHeadWeights));
  const json& prefill = bf16["prefill"];
  // Logits are wanted of the last token alone.
  EXPECT_NEAR(prefill["tflops"].get<double>() * prefill["seconds"].get<double>() * 1e12,
              2 * (20 * 8 * kLayerWeights + kHeadWeights), 1e3);
  const json draft = passes_json(
      {"--rows", "1", "--prompt-tokens", "0", "--formats", "bf16,mxfp4", "--reading", "mxfp4-w4a8"});
  EXPECT_EQ(draft["formats"], json({"bf16", "mxfp4"}));
  EXPECT_EQ(draft["readings"], json({"mxfp4-w4a8"}));
  EXPECT_EQ(draft["weight_bytes"], 4.25 / 8 * (8 * kLayerWeights + kHeadWeights));
  EXPECT_TRUE(draft["prefill"].is_null());
}

TEST(BenchPasses, PacksWhatTheReadingNeedsAndMeasuresOnlyTheRowsThatAreAsked) {
  const json object = passes_json({"--rows", "2", "--prompt-tokens", "0", "--reading", "mxbf16-draft"});
  EXPECT_EQ(object["formats"], json({"mxbf16"}));
  ASSERT_EQ(object["passes"].size(), 1u);
  EXPECT_TRUE(object["passes"][0]["ratio_to_one_row"].is_null());
}

TEST(BenchPasses, PrintsATable) {
  const RunResult result = run_program(quick_passes({"--prompt-tokens", "16"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char* part : {"2 threads; arbitrary tokens", "in bf16, reading bf16", "read bandwidth",
                           "after a context of 64 tokens", "to one row", "prefill of 16 tokens: "}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(BenchPasses, SaysInOneLineWhatIsWrong) {
  expect_usage_error({"bench", "passes"}, "MODEL is required");
  expect_usage_error(quick_passes({"--formats", "bf16,int9"}),
                     "there is no format \"int9\"; known are full, ");
  expect_usage_error(quick_passes({"--reading", "half"}), "there is no reading \"half\"; known are full, ");
  expect_usage_error(quick_passes({"--formats", "bf16", "--reading", "mxfp4-w4a8"}), "mxfp4");
  expect_usage_error(quick_passes({"--rows", "0"}), "--rows");
  expect_usage_error(quick_passes({"--context", "-1"}), "--context");
  expect_usage_error(quick_passes({"--context", "1020"}), "lower --context or --rows");
  expect_usage_error(quick_passes({"--prompt-tokens", "1025"}), "lower --prompt-tokens");
  const RunResult result = run_program({"bench", "passes", "/nowhere/at/all", "--quick"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
}

TEST(Bench, HelpHasExamples) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"bench", "--help"},
                                                  {"bench", "kernels", "--help"},
                                                  {"bench", "passes", "--help"},
                                                  {"bench", "decode", "--help"},
                                                  {"bench", "sweep", "--help"}}) {
    const RunResult result = run_program(command);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, HasSubstr("Example"));
    EXPECT_THAT(result.out, HasSubstr("\n  verbatim bench " +
                                      (command.size() > 2 ? command[1] : std::string("kernels"))));
    for (const std::string& line : lines_of(result.out)) EXPECT_LE(line.size(), 120u) << line;
  }
}

}  // namespace
}  // namespace verbatim
