#include "engine/model_access.h"
#include "support/lossless_formats.h"
#include "support/quantized_folder.h"
#include "support/test_recipes.h"

namespace verbatim {
namespace quantized_safetensors_test {
namespace {

using namespace test;  // NOLINT: the support of this very test

/// A model that was never trained, with the default model's vocabulary.
class QuantizedSafetensors : public testing::TestWithParam<MachinePath> {
 protected:
  Model model(const Quantizing& how, const std::vector<std::string>& formats) {
    TinyModelOptions options;
    options.hidden_size = 64;
    options.intermediate_size = 128;
    options.heads = 2;
    options.kv_heads = 1;
    options.vocab_size = 4096;
    const auto path = folder_.path() / "model";
    quantized_folder(how, options).write(path);
    std::filesystem::copy(default_model() / "tokenizer.model", path,
                          std::filesystem::copy_options::overwrite_existing);
    return load_model(path, formats);
  }

  static std::vector<int32_t> text(const Model& model, const std::string& recipe, float temperature,
                                   int threads) {
    const std::vector<int32_t> prompt = {1, 77, 3000, 77, 3000, 5};
    GenerateOptions options;
    options.sampling.temperature = temperature;
    options.sampling.seed = 7;
    options.max_tokens = 20;
    options.ignore_eos = true;
    Session session(model, 32, threads);
    return session.generate(prompt, options, load_recipe(recipe)).tokens;
  }

  TemporaryFolder folder_;
  SelectedKernels selected_{*GetParam().table};
};

INSTANTIATE_TEST_SUITE_P(, QuantizedSafetensors, testing::ValuesIn(machine_paths()),
                         path_name<testing::TestParamInfo<MachinePath>>);

const Quantizing kKinds[] = {
    {.method = "fp8", .block_rows = 32, .block_columns = 32, .scale_type = "F32"},
    {.method = "gptq", .bits = 4, .group_size = 32},
    {.method = "gptq", .bits = 4, .group_size = -1},
    {.method = "awq", .bits = 4, .group_size = -1, .symmetric = false},
    {.method = "gptq", .bits = 4, .group_size = 16, .symmetric = false, .reordered = true},
    {.method = "awq", .bits = 4, .group_size = 32, .symmetric = false},
    {.method = "pack-quantized", .bits = 8, .group_size = 64, .scale_type = "BF16"}};

TEST_P(QuantizedSafetensors, SayTheSameWithDraftsAndWithout) {
  for (const Quantizing& how : kKinds) {
    const Model quantized = model(how, {"full", "mxfp4", "int4"});
    for (const float temperature : {0.0f, 0.8f}) {
      const std::vector<int32_t> expected = text(quantized, "plain", temperature, 1);
      ASSERT_EQ(expected.size(), 20u);
      for (const char* recipe : {"ml-specqd", "ngram"}) {
        EXPECT_EQ(text(quantized, recipe, temperature, 2), expected) << how.method << " " << recipe;
      }
    }
  }
}

// The output matrix alone is in BF16, which holds no draft.
TEST_P(QuantizedSafetensors, OfFourBitsDraftWithTheirOwnCodes) {
  const Quantizing kinds[] = {{.method = "gptq", .bits = 4, .group_size = -1},
                              {.method = "awq", .bits = 4, .group_size = -1, .symmetric = false}};
  const auto toml = folder_.write("own.toml",
                                  "name = \"own\"\nsummary = \"s\"\nsource = \"t\"\n[drafter]\nkind = "
                                  "\"self\"\nreading = \"draft\"\n[drafter.stop]\nlength = 5\n");
  for (const Quantizing& how : kinds) {
    const Model quantized = model(how, {"full", "draft"});
    const DecoderWeights& weights = data_of(quantized).decoder.weights();
    EXPECT_EQ(weights.head.stores.size(), 2u);
    for (const LayerWeights& layer : weights.layers) {
      EXPECT_EQ(layer.down.stores.size(), 1u);
      EXPECT_EQ(layer.down.resolve(Reading::kDraft),
                how.symmetric ? Reading::kInt4W4A8 : Reading::kInt4AsymmetricW4A8);
    }
    for (const float temperature : {0.0f, 0.8f}) {
      EXPECT_EQ(text(quantized, toml.string(), temperature, 2), text(quantized, "plain", temperature, 1))
          << how.method;
    }
  }
}

}  // namespace
}  // namespace quantized_safetensors_test
}  // namespace verbatim
