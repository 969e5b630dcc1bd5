#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/run_bench.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using nlohmann::json;
using test::expect_usage_error;
using test::lines_of;
using test::run_bench;
using test::RunResult;
using ::testing::HasSubstr;

std::vector<std::string> quick_passes(std::vector<std::string> more) {
  more.insert(more.begin(), {"passes", test::default_model().string(), "--quick", "--threads", "2"});
  return more;
}

json passes_json(std::vector<std::string> more) {
  more.push_back("--json");
  const RunResult result = run_bench(quick_passes(more));
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
    EXPECT_EQ(pass["weight_bytes"], bytes);
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

TEST(BenchPasses, CountsOfAMixtureOfExpertsThoseThatAPassReads) {
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path(), {.model_type = "mixtral", .experts = 9});
  const auto passes = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"passes",          folder.path().string(),
                                          "--threads",       "1",
                                          "--quick",         "--json",
                                          "--rows",          "1,64",
                                          "--context",       "5",
                                          "--prompt-tokens", "20"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const RunResult result = run_bench(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out);
  };
  const json object = passes({});
  const double shared = 2 * (128.0 * (128 + 2 * 64) + 128.0 * 128) + 128.0 * 256;
  const double expert = 2 * 3 * 128.0 * 256;  // one of both layers
  EXPECT_EQ(object["weight_bytes"], 2 * (shared + 9 * expert));
  EXPECT_EQ(object["passes"][0]["weight_bytes"], 2 * (shared + 2 * expert));
  EXPECT_GT(object["passes"][1]["weight_bytes"], 2 * (shared + 7 * expert));
  const json& prefill = object["prefill"];
  EXPECT_NEAR(prefill["tflops"].get<double>() * prefill["seconds"].get<double>() * 1e12,
              2 * (20 * (shared - 128.0 * 256 + 2 * expert) + 128.0 * 256), 1e3);
  EXPECT_EQ(object["experts"], 2);

  const json one = passes({"--experts", "1"});
  EXPECT_EQ(one["experts"], 1);
  EXPECT_EQ(one["weight_bytes"], 2 * (shared + 9 * expert));
  EXPECT_EQ(one["passes"][0]["weight_bytes"], 2 * (shared + expert));
  EXPECT_NEAR(one["prefill"]["tflops"].get<double>() * one["prefill"]["seconds"].get<double>() * 1e12,
              2 * (20 * (shared - 128.0 * 256 + expert) + 128.0 * 256), 1e3);
  expect_usage_error({"passes", folder.path().string(), "--quick", "--experts", "3"}, "takes 2 experts");
}

TEST(BenchPasses, PacksWhatTheReadingNeedsAndMeasuresOnlyTheRowsThatAreAsked) {
  const json object = passes_json({"--rows", "2", "--prompt-tokens", "0", "--reading", "mxbf16-draft"});
  EXPECT_EQ(object["formats"], json({"mxbf16"}));
  ASSERT_EQ(object["passes"].size(), 1u);
  EXPECT_TRUE(object["passes"][0]["ratio_to_one_row"].is_null());
}

TEST(BenchPasses, PrintsATable) {
  const RunResult result = run_bench(quick_passes({"--prompt-tokens", "16"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char* part : {"2 threads; arbitrary tokens", "in bf16, reading bf16", "read bandwidth",
                           "after a context of 64 tokens", "to one row", "prefill of 16 tokens: "}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(BenchPasses, SaysInOneLineWhatIsWrong) {
  expect_usage_error({"passes"}, "MODEL is required");
  expect_usage_error(quick_passes({"--formats", "bf16,int9"}),
                     "there is no format \"int9\"; known are full, ");
  expect_usage_error(quick_passes({"--reading", "half"}), "there is no reading \"half\"; known are full, ");
  expect_usage_error(quick_passes({"--formats", "bf16", "--reading", "mxfp4-w4a8"}), "mxfp4");
  expect_usage_error(quick_passes({"--rows", "0"}), "--rows");
  expect_usage_error(quick_passes({"--context", "-1"}), "--context");
  expect_usage_error(quick_passes({"--context", "1020"}), "lower --context or --rows");
  expect_usage_error(quick_passes({"--prompt-tokens", "1025"}), "lower --prompt-tokens");
  const RunResult result = run_bench({"passes", "/nowhere/at/all", "--quick"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
}

}  // namespace
}  // namespace verbatim
