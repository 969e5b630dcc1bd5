#include <gtest/gtest.h>

#include "container/load.h"
#include "container/pack.h"
#include "support/engine_support.h"
#include "support/machine_paths.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

struct OnPath {
  test::MachinePath path;
  const char* type;
};
void PrintTo(const OnPath& one, std::ostream* out) {
  *out << one.path.name << ' ' << one.type;
}
std::vector<OnPath> on_all_paths() {
  std::vector<OnPath> all;
  for (const test::MachinePath& path : test::machine_paths()) {
    for (const char* const type : {"mixtral", "qwen3_moe"}) all.push_back({path, type});
  }
  return all;
}

/// A tiny mixture of experts whose matrices are as those of Q4_K_M files: Q4_K, and the values and the last
/// matrices of experts in Q6_K.
class KQuantsExperts : public testing::TestWithParam<OnPath> {
 protected:
  KQuantsExperts() { test::write_tiny_gguf(file(), options_); }
  std::filesystem::path file() const { return folder_.path() / "model.gguf"; }
  static std::vector<float> logits(const Decoder& decoder, int64_t chunk, Reading reading) {
    ThreadTeam team(2);
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < 64; ++i) tokens.push_back(i * 53 % 256);
    return test::all_logits(decoder, tokens, chunk, reading, team);
  }

  test::TemporaryFolder folder_;
  test::TinyModelOptions options_{.model_type = GetParam().type,
                                  .dtype = DType::kQ4_K,
                                  .hidden_size = 256,
                                  .intermediate_size = 512,
                                  .heads = 8,
                                  .vocab_size = 260,
                                  .byte_vocabulary = true,  // packing wants one
                                  .value_dtype = DType::kQ6_K,
                                  .expert_down_dtype = DType::kQ6_K};
  test::SelectedKernels selected_{*GetParam().path.table};
};
INSTANTIATE_TEST_SUITE_P(, KQuantsExperts, testing::ValuesIn(on_all_paths()),
                         [](const auto& info) { return info.param.path.name + "_" + info.param.type; });

constexpr Reading kReadings[] = {Reading::kFull, Reading::kKQuantsA8};

TEST_P(KQuantsExperts, HaveStoresInKQuantsOfTheirOwnTypes) {
  const Checkpoint checkpoint = open_checkpoint(file());
  int64_t in_q6_k = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) in_q6_k += tensor.dtype == DType::kQ6_K;
  EXPECT_EQ(in_q6_k, options_.layers * (1 + options_.experts));
  const Decoder decoder = test::load_decoder(file());
  EXPECT_EQ(decoder.weights().layers.front().experts.size(), 5u);
  each_matrix(decoder.weights(),
              [](const LinearWeight& matrix) { EXPECT_EQ(matrix.stores.front().format, Format::kKQuants); });
}

TEST_P(KQuantsExperts, RowsAreTheSameInPassesOfAnySize) {
  const Decoder decoder = test::load_decoder(file());
  for (const Reading reading : kReadings) {
    const std::vector<float> expected = logits(decoder, 1, reading);
    for (const int64_t chunk : {3, 9, 64}) {
      EXPECT_EQ(logits(decoder, chunk, reading), expected) << reading_name(reading) << ", " << chunk;
    }
  }
}

TEST_P(KQuantsExperts, OfOldFilesSayTheSame) {
  test::TinyModelOptions single = options_;
  single.stacked_experts = false;
  test::write_tiny_gguf(folder_.path() / "single.gguf", single);
  const Decoder expected = test::load_decoder(file());
  const Decoder actual = test::load_decoder(folder_.path() / "single.gguf");
  for (const Reading reading : kReadings) {
    EXPECT_EQ(logits(actual, 64, reading), logits(expected, 64, reading)) << reading_name(reading);
  }
}

TEST_P(KQuantsExperts, SayTheSameFromAPackedFile) {
  ThreadTeam team(2);
  PackModelOptions pack;
  pack.load.formats = {std::nullopt};
  const std::optional<Container> container =
      pack_model(open_checkpoint(file()), folder_.path() / "model.vbt", pack, team);
  ASSERT_TRUE(container);
  EXPECT_TRUE(container->exact());
  const Decoder packed(container->header.config, load_weights(*container, {std::nullopt}));
  const Decoder own = test::load_decoder(file());
  for (const Reading reading : kReadings) {
    EXPECT_EQ(logits(packed, 64, reading), logits(own, 64, reading)) << reading_name(reading);
  }
}

}  // namespace
}  // namespace verbatim
