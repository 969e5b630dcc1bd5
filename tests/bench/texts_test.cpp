#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/cpu.h"
#include "bench/run_bench.h"

namespace verbatim {
namespace {

using test::lines_of;
using test::run_bench;
using test::RunResult;

/// The lines of tests/data/portable.txt: an amount, its model, its numbers of prompts and of tokens, its
/// recipes, and the SHA-256 of the texts.
struct Recorded {
  std::string model;
  std::string limit;
  std::string tokens;
  std::string recipes;
  std::string sum;
};
Recorded recorded(const std::string& amount) {
  std::ifstream file(test::own_data() / "portable.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    Recorded found;
    if (words >> name >> found.model >> found.limit >> found.tokens >> found.recipes >> found.sum &&
        name == amount)
      return found;
  }
  ADD_FAILURE() << "portable.txt has no line of " << amount;
  return {};
}

/// What VERBATIM_ISA can be on this machine.
std::vector<std::string> isas() {
  const CpuFeatures& features = cpu_features();
  std::vector<std::string> names;
  for (const Isa isa : available_isas(features)) {
    if ((isa == Isa::kAvx2 && features.avx_vnni) || (isa == Isa::kAvx512 && features.avx512_vnni) ||
        (isa == Isa::kNeon && features.neon_dotprod))
      names.push_back(std::string(isa_name(isa)) + "-plain");
    names.emplace_back(isa_name(isa));
  }
  return names;
}

class Texts : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(, Texts, testing::ValuesIn(isas()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

// What was recorded on another machine, so that all machines that pass give the same.
TEST_P(Texts, OfPortableKernelsAreThoseOfEveryMachine) {
  TOO_LONG_FOR_SANITIZERS();
  const test::TemporaryFolder folder;
  const Recorded quick = recorded("quick");
  test::RunOptions options;
  options.environment = {{"VERBATIM_ISA", GetParam()}, {"VERBATIM_CACHE_DIR", folder.path().string()}};
  const RunResult result =
      run_bench({"texts", test::default_model(), "--prompts", test::own_data() / "prompts.jsonl", "--limit",
                 quick.limit, "-n", quick.tokens, "--recipes", quick.recipes, "--portable"},
                options);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 4u) << result.out;
  EXPECT_EQ(lines.back(), quick.sum + "  all") << result.out;
  // Two lossless recipes with the same cache: the same texts.
  EXPECT_EQ(lines[0].substr(0, 64), lines[1].substr(0, 64));
}

}  // namespace
}  // namespace verbatim
