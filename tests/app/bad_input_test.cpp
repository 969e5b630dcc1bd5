#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "base/cpu.h"
#include "support/run_program.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace bad_input_test {
namespace {

namespace fs = std::filesystem;
using test::lines_of;
using test::RunOptions;
using test::RunResult;
using ::testing::HasSubstr;

constexpr int kBadInputExit = 1;
constexpr int kUsageExit = 2;
constexpr int kMachineExit = 3;

RunOptions limited() {
  RunOptions options;
  options.limit_memory = true;
  options.seconds = 60;
  return options;
}

/// One line on stderr that holds the parts, nothing on stdout and that exit code.
void expect_refused(const std::vector<std::string>& arguments, int exit_code,
                    const std::vector<std::string>& parts, const RunOptions& options = limited()) {
  SCOPED_TRACE(::testing::PrintToString(arguments));
  const RunResult result = test::run_program(arguments, options);
  EXPECT_EQ(result.exit_code, exit_code);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_TRUE(result.err.starts_with("verbatim: ")) << result.err;
  for (const std::string& part : parts) EXPECT_THAT(result.err, HasSubstr(part));
}

void expect_model_refused(const fs::path& model, const std::vector<std::string>& parts) {
  expect_refused({"generate", model, "-p", "x", "-n", "2"}, kBadInputExit, parts);
  expect_refused({"inspect", model}, kBadInputExit, parts);
}

/// A tiny model with the default model's vocabulary. `change` may alter its tensors.
template <typename Change>
fs::path write_model(const test::TemporaryFolder& folder, Change change) {
  test::TinyModelOptions options;
  options.hidden_size = 64;
  options.head_dim = 16;
  options.vocab_size = 4096;
  const fs::path path = folder.path() / "model";
  test::write_tiny_llama(path, options);
  std::vector<test::NamedTensor> tensors = test::tiny_tensors(options);
  change(tensors);
  folder.write("model/model.safetensors", test::safetensors_file(tensors, DType::kBF16));
  for (const char* name : {"tokenizer.model", "tokenizer_config.json"}) {
    fs::copy(test::default_model() / name, path / name);
  }
  return path;
}

test::NamedTensor& named(std::vector<test::NamedTensor>& tensors, const std::string& name) {
  for (test::NamedTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  throw std::invalid_argument("no tensor " + name);
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(BadPrompt, IsRefused) {
  const std::string model = test::default_model();
  const test::TemporaryFolder folder;
  expect_refused({"generate", model}, kUsageExit, {"the prompt is empty"});
  expect_refused({"generate", model, "-p", ""}, kUsageExit, {"the prompt is empty"});
  expect_refused({"generate", model, "-f", folder.write("empty.txt", "")}, kBadInputExit, {"empty"});
  expect_refused({"generate", model, "-f", folder.path() / "absent.txt"}, kBadInputExit, {"absent.txt"});
  expect_refused({"generate", model, "-f", folder.path()}, kBadInputExit, {"is a folder"});
  expect_refused({"generate", model, "-p", "caf\xe9"}, kBadInputExit, {"not valid UTF-8 at byte 3 (0xe9)"});
  RunOptions long_input = limited();
  for (int i = 0; i < 1100; ++i) long_input.input += "1 ";
  expect_refused({"generate", model, "-f", "-"}, kBadInputExit, {"too long", "1024"}, long_input);
}

TEST(BadSetting, IsRefused) {
  const std::string model = test::default_model();
  const test::TemporaryFolder folder;
  expect_refused({"generate", model, "-p", "x", "--temperature", "-1"}, kUsageExit, {"temperature is -1"});
  expect_refused({"generate", model, "-p", "x", "--top-p", "nan"}, kUsageExit, {"top-p"});
  expect_refused({"generate", model, "-p", "x", "--recipe", "nope"}, kUsageExit, {"no recipe \"nope\""});
  expect_refused({"generate", model, "-p", "x", "--recipe", folder.path() / "absent.toml"}, kBadInputExit,
                 {"absent.toml"});
  expect_refused({"generate", model, "-p", "x", "--recipe", folder.write("broken.toml", "name = \n= [")},
                 kBadInputExit, {"broken.toml", "line 1"});
  expect_refused({"generate", model, "-p", "x", "--recipe", folder.write("odd.toml", "colour = 'red'")},
                 kBadInputExit, {"odd.toml", "colour"});
}

TEST(BadMachinePath, ThatIsUnknownIsRefused) {
  const std::string model = test::default_model();
  RunOptions options = limited();
  options.environment = {{"VERBATIM_PORTABLE", "yes"}};
  expect_refused({"inspect", model}, kUsageExit, {"VERBATIM_PORTABLE is \"yes\""}, options);
  options.environment = {{"VERBATIM_ISA", "mmx"}};
  expect_refused({"generate", model, "-p", "x", "-n", "2"}, kUsageExit, {"VERBATIM_ISA is \"mmx\""}, options);
  expect_refused({"inspect", model}, kUsageExit, {"VERBATIM_ISA is \"mmx\""}, options);
}

TEST(BadMachinePath, ThatTheMachineLacksIsRefused) {
  const std::string model = test::default_model();
  if (cpu_features().amx) GTEST_SKIP() << "this machine lacks nothing";
  RunOptions options = limited();
  options.environment = {{"VERBATIM_ISA", "amx"}};
  expect_refused({"generate", model, "-p", "x", "-n", "2"}, kMachineExit, {"amx"}, options);
}

TEST(BadModel, ThatIsNoneIsRefused) {
  const test::TemporaryFolder folder;
  expect_model_refused(folder.path() / "absent", {"absent does not exist"});
  expect_model_refused(folder.path() / "two\nlines", {"two lines does not exist"});
  expect_model_refused(folder.path(), {"no model.safetensors"});
  expect_model_refused(folder.write("notes.txt", "hello"), {"notes.txt is no model"});
}

TEST(BadModel, WithBrokenSafetensorsIsRefused) {
  const test::TemporaryFolder folder;
  const fs::path model = write_model(folder, [](auto&) {});
  const fs::path file = model / "model.safetensors";
  const std::string whole = test::read_file(file);
  folder.write("model/model.safetensors", whole.substr(0, whole.size() / 2));
  expect_model_refused(model, {"model.safetensors"});
  folder.write("model/model.safetensors", test::bytes_of(uint64_t{1} << 63) + whole.substr(8));
  expect_model_refused(model, {"model.safetensors"});
  folder.write("model/model.safetensors", "");
  expect_model_refused(model, {"model.safetensors"});
}

TEST(BadModel, WithoutATensorIsRefused) {
  const test::TemporaryFolder folder;
  const fs::path model = write_model(folder, [](auto& tensors) { tensors.pop_back(); });
  expect_model_refused(model, {"lm_head.weight"});
}

TEST(BadModel, WithATensorOfTheWrongShapeIsRefused) {
  const test::TemporaryFolder folder;
  const fs::path model = write_model(folder, [](auto& tensors) {
    std::swap(named(tensors, "model.layers.1.mlp.down_proj.weight").shape[0],
              named(tensors, "model.layers.1.mlp.down_proj.weight").shape[1]);
  });
  expect_model_refused(model, {"model.layers.1.mlp.down_proj.weight", "256"});
}

TEST(BadModel, WithALyingGgufStringIsRefused) {
  const test::TemporaryFolder folder;
  test::GgufBuilder builder;
  builder.raw("general.architecture",
              test::bytes_of<uint32_t>(8) + test::bytes_of(uint64_t{1} << 62) + "llama");
  expect_model_refused(folder.write("lying.gguf", builder.build()), {"lying.gguf"});
}

TEST(NanWeights, AreWarnedOfWhileSomeLogitsAreFinite) {
  const test::TemporaryFolder folder;
  // A NaN in the output matrix spoils one logit.
  const fs::path model =
      write_model(folder, [](auto& tensors) { named(tensors, "lm_head.weight").values.front() = kNan; });
  for (const char* recipe : {"plain", "ml-specqd"}) {
    const RunResult result =
        test::run_program({"generate", model, "-p", "x", "-n", "4", "--recipe", recipe}, limited());
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr("verbatim: warning: "));
    EXPECT_THAT(result.err, HasSubstr("tensor lm_head.weight holds NaN"));
    EXPECT_EQ(lines_of(result.err).size(), 2u) << result.err;
  }
}

TEST(NanWeights, ThatSpoilEveryLogitEndInAnError) {
  const test::TemporaryFolder folder;
  const fs::path model =
      write_model(folder, [](auto& tensors) { named(tensors, "model.norm.weight").values.front() = kNan; });
  const RunResult result = test::run_program({"generate", model, "-p", "x", "-n", "4"}, limited());
  EXPECT_EQ(result.exit_code, kBadInputExit);
  EXPECT_EQ(result.out, "");
  const std::vector<std::string> lines = lines_of(result.err);
  ASSERT_EQ(lines.size(), 2u) << result.err;
  EXPECT_THAT(lines[0], HasSubstr("warning: "));
  EXPECT_THAT(lines[1], HasSubstr("no usable logit"));
}

}  // namespace
}  // namespace bad_input_test
}  // namespace verbatim
