#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/run_program.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using test::expect_refused;
using test::run_program;
using ::testing::HasSubstr;

TEST(ConvertCommand, GivesTheLogitsAndTheTokensOfTheOriginal) {
  const test::TemporaryFolder folder;
  const std::string model = test::draft_model();
  const std::string gguf = folder.path() / "draft.gguf";
  const std::string back = folder.path() / "draft";
  const auto run = [](const std::vector<std::string>& arguments) {
    const test::RunResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return result.out;
  };
  EXPECT_THAT(run({"convert", model, "-o", gguf}), HasSubstr("every weight as it was"));
  EXPECT_THAT(run({"convert", gguf, "-o", back}), HasSubstr("every weight as it was"));
  const std::string text = "Once upon a time, 12 birds\n  sang <s>.";
  const std::string ids = run({"tokenize", model, text, "--json"});
  EXPECT_EQ(run({"tokenize", gguf, text, "--json"}), ids);
  EXPECT_EQ(run({"tokenize", back, text, "--json"}), ids);
  const fs::path file = folder.path() / "ids.json";
  std::ofstream(file) << ids;
  const auto logits = [&](const std::string& name) {
    return run({"eval", "logits", name, "--tokens", file, "--top", "100", "--json"});
  };
  const std::string expected = logits(model);
  EXPECT_EQ(logits(gguf), expected);
  EXPECT_EQ(logits(back), expected);
}

TEST(ConvertCommand, SaysWhatWidenedMatricesLost) {
  const test::TemporaryFolder folder;
  test::TinyModelOptions options;
  options.hidden_size = 256;
  options.heads = 8;
  options.dtype = DType::kQ6_K;
  const std::string gguf = folder.path() / "blocks.gguf";
  test::write_tiny_gguf(gguf, options);
  expect_refused({"convert", gguf, "-o", folder.path() / "wide"}, 1, {"Q6_K", "--widen f32"});
  const auto widen = [&](const std::string& type) {
    return run_program({"convert", gguf, "-o", folder.path() / type, "--widen", type}).out;
  };
  EXPECT_THAT(widen("f32"), HasSubstr("tensors widened, every weight exactly"));
  EXPECT_THAT(widen("bf16"), HasSubstr("weights of them rounded"));
}

TEST(ConvertCommand, RefusesWhatMeansNothing) {
  const test::TemporaryFolder folder;
  const std::string model = test::draft_model();
  const std::string target = folder.path() / "x.gguf";
  expect_refused({"convert", model, "-o", target, "--to", "onnx"}, 2, {"--to", "onnx", "folder, gguf"});
  expect_refused({"convert", model, "-o", target, "--widen", "f64"}, 2, {"--widen", "f64"});
  expect_refused({"convert", model, "-o", target, "--widen", "f32"}, 2, {"widened"});
  expect_refused({"convert", "nowhere", "-o", target}, 1, {"nowhere", "does not exist"});
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace verbatim
