#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "bench/run_bench.h"

namespace verbatim {
namespace {

using nlohmann::json;
using test::lines_of;
using test::run_bench;
using test::RunResult;
using ::testing::HasSubstr;

TEST(BenchAttention, ComparesEveryCacheWithBf16) {
  const RunResult result = run_bench({"attention", "--quick", "--contexts", "1000", "--groups", "1,3",
                                      "--head-dim", "40", "--kv-heads", "2", "--threads", "2", "--json"});
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
  const RunResult result =
      run_bench({"attention", "--quick", "--contexts", "4194304", "--kv-heads", "256", "--head-dim", "256"});
  EXPECT_EQ(result.exit_code, 3);
  ASSERT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_THAT(result.err, HasSubstr("4194304 tokens takes"));
}

}  // namespace
}  // namespace verbatim
