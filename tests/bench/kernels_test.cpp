#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/run_bench.h"
#include "formats/format.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using nlohmann::json;
using test::expect_usage_error;
using test::run_bench;
using test::RunOptions;
using test::RunResult;
using ::testing::HasSubstr;

std::vector<std::string> quick(std::vector<std::string> more) {
  more.insert(more.begin(), {"kernels", "--quick", "--threads", "2"});
  return more;
}

json bench_json(std::vector<std::string> more, const RunOptions& options = {}) {
  more.push_back("--json");
  const RunResult result = run_bench(quick(more), options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return json::parse(result.out);
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
    if (format == Format::kKQuants) {
      for (const char* const shape : {"q2", "q3", "q4", "q5", "q6"}) {
        for (const char* const bits : {"16", "8"}) {
          expected.push_back(std::string("k-quants-") + shape + " k-quants-a" + bits);
        }
      }
      continue;
    }
    const bool sparse = format == Format::kSqueeze3 || format == Format::kSqueeze4;
    for (const char* const variant : {"", "-dense", "-gathered"}) {
      if (variant[0] != 0 && !sparse) continue;
      for (const Reading reading : verbatim::readings(format)) {
        expected.push_back(std::string(format_name(format)) + variant + " " +
                           std::string(reading_name(reading)));
      }
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
  const RunResult result = run_bench(quick({"--shapes", "64x32", "--rows", "2", "--formats", "bf16"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char* part :
       {"2 threads; random weights", "read bandwidth", "64 x 32", "GB/s", "bf16               bf16 "}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(BenchKernels, HonoursTheForcedMachinePath) {
  RunOptions options;
  options.environment = {{"VERBATIM_ISA", "scalar"}};
  EXPECT_EQ(bench_json({"--shapes", "32x32", "--rows", "1", "--formats", "bf16"}, options)["isa"], "scalar");
}

TEST(BenchKernels, SaysInOneLineWhatIsWrong) {
  expect_usage_error({}, "a command is missing (`verbatim-bench --help`");
  expect_usage_error({"pots"}, "there is no command or option pots");
  expect_usage_error({"kernels", "--loud"}, "(`verbatim-bench kernels --help`");
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

}  // namespace
}  // namespace verbatim
