#include <gtest/gtest.h>

#include <cmath>

#include "support/engine_support.h"
#include "support/machine_paths.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace q8_0_decoder_test {
namespace {

std::vector<int32_t> some_tokens() {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 24; ++i) tokens.push_back(i * 53 % 256);
  return tokens;
}

Decoder decoder_of(const Checkpoint& checkpoint, std::vector<std::optional<Format>> formats) {
  ThreadTeam team(2);
  std::vector<std::string> warnings;
  LoadOptions options;
  options.formats = std::move(formats);
  DecoderWeights weights = pack_weights(checkpoint, options, team, warnings);
  return {checkpoint.config, std::move(weights)};
}

/// Opens a tiny model in a GGUF file; the same weights for every type, up to rounding.
Checkpoint tiny(const test::TemporaryFolder& folder, DType dtype, const std::string& family = "llama") {
  test::TinyModelOptions options;
  options.model_type = family;
  options.dtype = dtype;
  const auto path = folder.path() / (family + dtype_name(dtype) + ".gguf");
  test::write_tiny_gguf(path, options);
  return open_checkpoint(path);
}

class Q8_0Decoder : public testing::TestWithParam<test::MachinePath> {
 protected:
  std::vector<float> logits(const Decoder& decoder, int64_t chunk) {
    ThreadTeam team(2);
    return test::all_logits(decoder, some_tokens(), chunk, Reading::kFull, team);
  }
  test::TemporaryFolder folder_;
  test::SelectedKernels selected_{*GetParam().table};
};
INSTANTIATE_TEST_SUITE_P(, Q8_0Decoder, testing::ValuesIn(test::machine_paths()),
                         test::path_name<testing::TestParamInfo<test::MachinePath>>);

TEST_P(Q8_0Decoder, DiffersFromTheWidenedWeightsByTheRoundingOfActivationsAlone) {
  // The others have matrices that are stored as one, or LayerNorms and biases.
  for (const char* family : {"llama", "phi3", "glm4", "gpt2", "starcoder2"}) {
    const Checkpoint checkpoint = tiny(folder_, DType::kQ8_0, family);
    const std::vector<float> own = logits(decoder_of(checkpoint, {std::nullopt}), 512);
    const std::vector<float> wide = logits(decoder_of(checkpoint, {Format::kF32}), 512);
    double error = 0.0;
    double size = 0.0;
    for (size_t i = 0; i < own.size(); ++i) {
      error += std::pow(own[i] - wide[i], 2.0);
      size += std::pow(wide[i], 2.0);
    }
    EXPECT_GT(error, 0.0) << family;
    EXPECT_LT(std::sqrt(error / size), 0.01) << family;
  }
}

TEST_P(Q8_0Decoder, RowsAreTheSameInPassesOfAnySize) {
  const Decoder decoder = decoder_of(tiny(folder_, DType::kQ8_0), {std::nullopt});
  const std::vector<float> expected = logits(decoder, 1);
  for (const int64_t chunk : {2, 7, 512}) EXPECT_EQ(logits(decoder, chunk), expected) << chunk;
}

TEST_P(Q8_0Decoder, OfAFileOfSeveralTypesHasEachMatrixInTheFormatOfItsOwn) {
  Checkpoint checkpoint = tiny(folder_, DType::kQ8_0);
  const Checkpoint f16 = tiny(folder_, DType::kF16);
  const auto take = [&](const std::string& name) { checkpoint.tensors.at(name) = f16.tensors.at(name); };
  take("lm_head.weight");
  take("model.layers.0.self_attn.v_proj.weight");  // a part of a matrix whose other parts are in Q8_0
  checkpoint.files.insert(checkpoint.files.end(), f16.files.begin(), f16.files.end());
  const Decoder decoder = decoder_of(checkpoint, {std::nullopt});
  const DecoderWeights& weights = decoder.weights();
  EXPECT_EQ(weights.head.stores.front().format, Format::kF16);
  EXPECT_EQ(weights.layers[0].qkv.stores.front().format, Format::kF32);
  EXPECT_EQ(weights.layers[0].output.stores.front().format, Format::kQ8_0);
  EXPECT_EQ(weights.layers[1].qkv.stores.front().format, Format::kQ8_0);
  EXPECT_EQ(logits(decoder, 1), logits(decoder, 512));
}

TEST(Q8_0Weights, TakeEightAndAHalfBits) {
  const test::TemporaryFolder folder;
  const Decoder decoder = decoder_of(tiny(folder, DType::kQ8_0), {std::nullopt});
  EXPECT_NEAR(bits_per_weight(decoder.weights(), Reading::kFull), 8.5, 0.01);
}

}  // namespace
}  // namespace q8_0_decoder_test
}  // namespace verbatim
