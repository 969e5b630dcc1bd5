#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drafting/ngram_table.h"
#include "support/run_program.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::expect_refused;
using test::lines_of;
using test::run_program;
using test::RunResult;

TEST(Ngrams, CountsATextIntoAFile) {
  const test::TemporaryFolder folder;
  const std::string text = folder.write("text", "for i in range(10):\n    print(i)\nfor i in range(20):\n");
  const std::string more = folder.write("more", "import os\nimport sys\n");
  const std::string file = folder.path() / "table";
  const RunResult result = run_program({"ngrams", test::default_model(), text, more, "-o", file, "--shortest",
                                        "2", "--longest", "5", "--contexts", "1024"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  ASSERT_EQ(lines_of(result.out).size(), 1u) << result.out;
  EXPECT_TRUE(result.out.starts_with(file + ": ")) << result.out;
  const NgramTable table = NgramTable::load(file);
  EXPECT_EQ(table.shape().shortest, 2);
  EXPECT_EQ(table.shape().longest, 5);
  EXPECT_EQ(table.shape().contexts, 1024);
  EXPECT_GT(table.size(), 20);
}

TEST(Ngrams, SaysWhatIsWrong) {
  const test::TemporaryFolder folder;
  const std::string model = test::default_model();
  const std::string text = folder.write("text", "for i in range(10):\n");
  const std::string file = folder.path() / "table";
  expect_refused({"ngrams", model, text, "-o", text}, 1, {"exists"});
  expect_refused({"ngrams", model, file, "-o", file}, 1, {"table"});
  expect_refused({"ngrams", folder.path(), text, "-o", file}, 1, {});
  expect_refused({"ngrams", model, folder.write("empty", ""), "-o", file}, 1, {"too short"});
  expect_refused({"ngrams", model, folder.write("binary", "a\xff\xfe"), "-o", file}, 1, {"binary"});
  expect_refused({"ngrams", model, text}, 2, {"--output"});
  expect_refused({"ngrams", model, text, "-o", file, "--shortest", "5"}, 2, {"--shortest"});
  expect_refused({"ngrams", model, text, "-o", file, "--longest", "33"}, 2, {"33"});
  expect_refused({"ngrams", model, text, "-o", file, "--contexts", "1000"}, 2, {"power of two"});
}

}  // namespace
}  // namespace verbatim
