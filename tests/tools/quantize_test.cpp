#include "verbatim/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/bad_input.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "verbatim/inspect.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using test::expect_bad_input;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void expect_usage(const std::function<void()>& work, const std::string& part) {
  try {
    work();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

TEST(QuantizeModel, WritesAFolderThatSaysHowItWasMade) {
  const test::TemporaryFolder folder;
  const fs::path made = folder.path() / "atom";
  const auto report = quantize_model(test::draft_model(), made,
                                     {.scheme = "atom",
                                      .calibration = "Once upon a time there was a girl.",
                                      .calibration_tokens = 5,
                                      .threads = 2});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->calibration_tokens, 5);
  const ModelReport inspected = inspect_model(made);
  EXPECT_EQ(inspected.packed->quantization, "atom");
  EXPECT_EQ(inspected.file_bytes, report->bytes);
  EXPECT_THAT(test::read_file(made / "README.md"), HasSubstr("--scheme atom` with 5 tokens of text"));
}

TEST(QuantizeModel, LooksAtATextForSomeSchemesAlone) {
  EXPECT_THAT(quantization_schemes(), ElementsAre("rtn", "awq", "gptq", "atom", "quarot"));
  EXPECT_FALSE(needs_calibration("rtn"));
  EXPECT_TRUE(needs_calibration("awq"));
  EXPECT_TRUE(needs_calibration("gptq"));
  EXPECT_TRUE(needs_calibration("atom"));
  EXPECT_FALSE(needs_calibration("quarot"));
  expect_usage([] { needs_calibration("none"); }, "rtn, awq, gptq, atom, quarot");
}

TEST(QuantizeModel, LeavesNothingBehindWhenItIsCancelledOrFails) {
  const test::TemporaryFolder folder;
  const fs::path model = folder.path() / "model";
  const fs::path made = folder.path() / "made";
  test::write_tiny_llama(model);
  EXPECT_EQ(quantize_model(model, made, {.threads = 2, .cancelled = [] { return true; }}), std::nullopt);
  expect_usage([&] { quantize_model(model, made, {.scheme = "int5"}); }, "int5");
  expect_usage([&] { quantize_model(model, made, {.scheme = "awq"}); }, "text");
  expect_usage([&] { quantize_model(model, made, {.bits = 5}); }, "rtn has no 5 bits");
  expect_bad_input([&] { quantize_model(model, made, {.scheme = "awq", .calibration = "a"}); },
                   {"vocabulary"});
  expect_bad_input(
      [&] {
        quantize_model(test::draft_model(), made,
                       {.scheme = "awq", .calibration = "", .calibration_name = "notes.txt"});
      },
      {"notes.txt is empty"});
  expect_bad_input([&] { quantize_model(model, model); }, {"not empty"});
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace verbatim
