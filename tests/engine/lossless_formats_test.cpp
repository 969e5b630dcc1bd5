#include "support/lossless_formats.h"
#include "support/synthetic_model.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT: the support of this very test

INSTANTIATE_TEST_SUITE_P(, LosslessFormats,
                         testing::Combine(testing::ValuesIn(machine_paths()), testing::Values(0.0f, 0.8f)),
                         lossless_parameter_name);

TEST_P(LosslessFormats, SayWhatBf16Says) {
  LOWER_PATHS_TOO_LONG_FOR_SANITIZERS(std::get<0>(GetParam()).name);
  expect_the_text_of_bf16("def fibonacci(n):\n    \"\"\"", temperature_, slow_ ? 5 : 24);
}

/// A model in F16 that was never trained, with the default model's vocabulary.
class LosslessFormatsOfF16 : public testing::TestWithParam<MachinePath> {
 protected:
  void SetUp() override {
    TinyModelOptions options;
    options.dtype = DType::kF16;
    options.hidden_size = 64;
    options.intermediate_size = 128;
    options.heads = 2;
    options.kv_heads = 1;
    options.vocab_size = 4096;
    write_tiny_llama(folder_.path(), options);
    std::filesystem::copy(default_model() / "tokenizer.model", folder_.path());
  }
  /// What the model says to two prompts at two temperatures.
  std::vector<std::vector<int32_t>> texts(const Model& model, const StoreRecipe& store, int threads) {
    std::vector<std::vector<int32_t>> all;
    for (const std::vector<int32_t>& prompt :
         {std::vector<int32_t>{1, 77, 3000}, std::vector<int32_t>(20, 123)}) {
      for (const float temperature : {0.0f, 0.8f}) {
        all.push_back(generate_from(model, store, prompt, temperature, 20, threads).tokens);
        EXPECT_EQ(all.back().size(), 20u);
      }
    }
    return all;
  }
  TemporaryFolder folder_;
  SelectedKernels selected_{*GetParam().table};
};

INSTANTIATE_TEST_SUITE_P(, LosslessFormatsOfF16, testing::ValuesIn(machine_paths()),
                         path_name<testing::TestParamInfo<MachinePath>>);

TEST_P(LosslessFormatsOfF16, SayWhatF16Says) {
  const std::vector<std::vector<int32_t>> expected =
      texts(load_model(folder_.path(), {"f16"}), {"f16", ""}, 2);
  const Model bsfp = load_model(folder_.path(), {"bsfp"});
  for (const std::string reading : {"", "bsfp-draft"}) {
    for (const int threads : {1, 2}) {
      EXPECT_EQ(texts(bsfp, {"bsfp", reading}, threads), expected)
          << reading << ", " << threads << " threads";
    }
  }
  // These texts tell when bits are lost.
  EXPECT_NE(texts(load_model(folder_.path(), {"bf16"}), {"bf16", ""}, 2), expected);
}

TEST(LosslessFormatsOfOtherTypes, AreRefusedInWordsThatHelp) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "f32";
  write_tiny_llama(file, {.dtype = DType::kF32});
  for (const std::string format : {"bsfp", "mxbf16"}) {
    try {
      load_model(file, {format});
      ADD_FAILURE() << format << " cannot hold F32";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
      const std::string message = error.what();
      EXPECT_NE(message.find(format), std::string::npos) << message;
      EXPECT_NE(message.find("name the format f32 instead"), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace verbatim
