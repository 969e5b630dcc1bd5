#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/run_program.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using test::expect_refused;
using test::lines_of;
using test::run_program;
using test::RunResult;
using ::testing::HasSubstr;

TEST(InflateCommand, MakesAModelThatOpens) {
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "small");
  const std::string large = folder.path() / "large";
  const RunResult result =
      run_program({"inflate", folder.path() / "small", "-o", large, "--width", "2", "--depth", "3"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(lines_of(result.out).size(), 1u) << result.out;
  EXPECT_TRUE(result.out.starts_with(large + ": 1.9 million parameters")) << result.out;
  const RunResult inspected = run_program({"inspect", large});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, HasSubstr("8 heads of 32, 4 for keys and values"));
}

TEST(InflateCommand, RefusesBadInputInOneLine) {
  const test::TemporaryFolder folder;
  const std::string small = folder.path() / "small";
  const std::string large = folder.path() / "large";
  test::write_tiny_llama(small);
  const std::string gguf = folder.path() / "tiny.gguf";
  test::write_tiny_gguf(gguf);
  expect_refused({"inflate", folder.path() / "absent", "-o", large, "--width", "2"}, 1,
                 {"absent does not exist"});
  expect_refused({"inflate", small, "-o", small, "--width", "2"}, 1, {"small", "not empty"});
  expect_refused({"inflate", small, "-o", folder.path() / "no" / "where", "--width", "2"}, 1,
                 {"no in which where should be made does not exist"});
  expect_refused({"inflate", small, "-o", large, "--depth", "1"}, 1, {"2 layers"});
  expect_refused({"inflate", gguf, "-o", large, "--width", "2"}, 1, {"GGUF"});
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 2);
}

TEST(InflateCommand, RefusesWrongUsageInOneLine) {
  expect_refused({"inflate", "m"}, 2, {"--output is required"});
  expect_refused({"inflate", "-o", "x"}, 2, {"MODEL is required"});
  expect_refused({"inflate", "m", "-o", "x"}, 2, {"--width", "--depth"});
  expect_refused({"inflate", "m", "-o", "x", "--width", "3"}, 2, {"--width", "3"});
  expect_refused({"inflate", "m", "-o", "x", "--width", "two"}, 2, {"two"});
  expect_refused({"inflate", "m", "-o", "x", "--depth", "0"}, 2, {"--depth", "0"});
  expect_refused({"inflate", "m", "-o", "x", "--depth", "1025"}, 2, {"1025"});
}

}  // namespace
}  // namespace verbatim
