#include <gtest/gtest.h>

#include <cmath>

#include "support/engine_support.h"
#include "support/machine_paths.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

/// A tiny model whose matrices are as those of Q4_K_M files: Q4_K, and the values in Q6_K.
class KQuantsDecoder : public testing::TestWithParam<test::MachinePath> {
 protected:
  KQuantsDecoder() {
    test::TinyModelOptions options;
    options.dtype = DType::kQ4_K;
    options.value_dtype = DType::kQ6_K;
    options.hidden_size = 256;
    options.heads = 8;
    options.intermediate_size = 512;
    test::write_tiny_gguf(folder_.path() / "model.gguf", options);
  }
  Decoder decoder(std::vector<std::optional<Format>> formats) {
    ThreadTeam team(2);
    std::vector<std::string> warnings;
    LoadOptions options;
    options.formats = std::move(formats);
    const Checkpoint checkpoint = open_checkpoint(folder_.path() / "model.gguf");
    DecoderWeights weights = pack_weights(checkpoint, options, team, warnings);
    return {checkpoint.config, std::move(weights)};
  }
  static std::vector<float> logits(const Decoder& decoder, int64_t chunk, Reading reading = Reading::kFull) {
    ThreadTeam team(2);
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < 24; ++i) tokens.push_back(i * 53 % 256);
    return test::all_logits(decoder, tokens, chunk, reading, team);
  }
  /// The size of the difference between logits, over that of the logits.
  static double difference(const std::vector<float>& a, const std::vector<float>& b) {
    double error = 0.0;
    double size = 0.0;
    for (size_t i = 0; i < a.size(); ++i) {
      error += std::pow(a[i] - b[i], 2.0);
      size += std::pow(b[i], 2.0);
    }
    return std::sqrt(error / size);
  }

  test::TemporaryFolder folder_;
  test::SelectedKernels selected_{*GetParam().table};
};
INSTANTIATE_TEST_SUITE_P(, KQuantsDecoder, testing::ValuesIn(test::machine_paths()),
                         test::path_name<testing::TestParamInfo<test::MachinePath>>);

TEST_P(KQuantsDecoder, DiffersFromTheWidenedWeightsByTheRoundingOfActivationsAlone) {
  const Decoder own = decoder({std::nullopt});
  const std::vector<float> wide = logits(decoder({Format::kF32}), 512);
  // Sixteen bits lose next to nothing, but keys and values may round to other BF16 numbers.
  EXPECT_LT(difference(logits(own, 512), wide), 0.003);
  const double of_eight_bits = difference(logits(own, 512, Reading::kKQuantsA8), wide);
  EXPECT_GT(of_eight_bits, 0.0);
  EXPECT_LT(of_eight_bits, 0.03);
}

TEST_P(KQuantsDecoder, RowsAreTheSameInPassesOfAnySize) {
  const Decoder own = decoder({std::nullopt});
  for (const Reading reading : {Reading::kFull, Reading::kKQuantsA8}) {
    const std::vector<float> expected = logits(own, 1, reading);
    for (const int64_t chunk : {2, 7, 512}) EXPECT_EQ(logits(own, chunk, reading), expected) << chunk;
  }
}

TEST_P(KQuantsDecoder, MatricesOfTwoTypesAreStoredInOne) {
  const Decoder own = decoder({std::nullopt});
  each_matrix(own.weights(),
              [](const LinearWeight& matrix) { EXPECT_EQ(matrix.stores.front().format, Format::kKQuants); });
  EXPECT_NEAR(bits_per_weight(own.weights(), Reading::kFull), 4.7, 0.1);
}

}  // namespace
}  // namespace verbatim
