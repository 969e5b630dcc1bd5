#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/run_program.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using nlohmann::json;
using test::run_program;
using test::RunResult;

std::string run(const std::vector<std::string>& arguments) {
  const RunResult result = run_program(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

// The model is so large that a second copy of its weights, or the weights of the format that is not used,
// would not fit within the limit, and the prompt so long that it is read in two passes.
TEST(PackCommand, TakesNoMoreMemoryThanItsWeights) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take memory of their own";
#endif
  const test::TemporaryFolder folder;
  const std::string model = folder.path() / "large";
  const std::string file = folder.path() / "large.vbt";
  run({"inflate", test::default_model(), "-o", model, "--width", "2", "--depth", "9"});
  run({"pack", model, "-o", file, "--formats", "mxbf16,bf16"});
  const json inspected = json::parse(run({"inspect", file, "--json"}));
  const json& packed = inspected["packed"];
  std::string prompt;
  for (int i = 0; i < 80; ++i) prompt += "def fibonacci(n):\n";
  for (const std::string format : {"mxbf16", "bf16"}) {
    const json result = json::parse(run({"generate", file, "-p", prompt, "-n", "32", "--ignore-eos", "--json",
                                         "--formats", format, "--recipe", "plain"}));
    const int64_t weights = packed["formats"][format]["bytes"].get<int64_t>();
    const int64_t used =
        weights + packed["embedding"]["bytes"].get<int64_t>() + packed["vectors"]["bytes"].get<int64_t>();
    const int64_t prompt_tokens = result["prompt_tokens"].get<int64_t>();
    EXPECT_GT(prompt_tokens, 512);
    const int64_t tokens = prompt_tokens + result["generated_tokens"].get<int64_t>();
    const int64_t cache = tokens * inspected["memory_bytes"]["kv_per_token"].get<int64_t>();
    const double most = 1.05 * static_cast<double>(used + cache) + (64 << 20);
    ASSERT_GT(2.0 * static_cast<double>(weights), most);  // or the test could not fail
    EXPECT_LE(result["peak_rss_bytes"].get<double>(), most) << format;
  }
}

}  // namespace
}  // namespace verbatim
