#include "verbatim/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/bad_input.h"
#include "support/engine_support.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "verbatim/formats.h"
#include "verbatim/inspect.h"

namespace verbatim {
namespace {

using test::expect_bad_input;
using ::testing::ElementsAre;

TEST(Weights, TakeTheBytesThatInspectingPromised) {
  const Model model = test::load_model(test::draft_model(), {"full", "mxfp4"});
  const MemoryEstimate memory = inspect_model(test::draft_model()).memory;
  EXPECT_EQ(weight_bytes(model, {"full"}), memory.full);
  EXPECT_EQ(weight_bytes(model, {"bf16", "full"}), memory.full);
  EXPECT_EQ(weight_bytes(model, {"mxfp4"}), memory.mxfp4);
  EXPECT_EQ(weight_bytes(model, {"int4"}), 0);
  EXPECT_EQ(weight_bytes(model), memory.full + memory.mxfp4);
  EXPECT_GT(flops_per_token(model), 1e6);
}

TEST(Weights, OfKQuantsTakeTheBytesThatInspectingPromised) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "model.gguf";
  // Heads of 20 rows: where values are of another type, a panel of queries, keys and values would have two.
  for (const int32_t head_dim : {32, 20}) {
    for (const DType values : {DType::kQ4_K, DType::kQ6_K}) {
      test::write_tiny_gguf(file, {.dtype = DType::kQ4_K,
                                   .hidden_size = 256,
                                   .intermediate_size = 256,
                                   .heads = head_dim == 32 ? 8 : 64,
                                   .kv_heads = head_dim == 32 ? 8 : 1,
                                   .head_dim = head_dim,
                                   .vocab_size = 260,
                                   .byte_vocabulary = true,
                                   .value_dtype = values});
      EXPECT_EQ(weight_bytes(test::load_model(file, {"full"})), inspect_model(file).memory.full);
    }
  }
}

// K-quants and Q8_0 hold drafts themselves, so loading for `auto` packs a copy of other matrices alone.
TEST(Weights, ToDraftFromAreThoseThatInspectingPromised) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "model.gguf";
  for (const char* const type : {"llama", "mixtral", "qwen3_moe"}) {
    test::TinyModelOptions options{.model_type = type,
                                   .dtype = DType::kQ4_K,
                                   .hidden_size = 256,
                                   .intermediate_size = 512,
                                   .heads = 8,
                                   .vocab_size = 260,
                                   .byte_vocabulary = true};
    test::write_tiny_gguf(file, options);
    const MemoryEstimate memory = inspect_model(file).memory;
    EXPECT_EQ(memory.mxfp4, 0) << type;
    EXPECT_EQ(weight_bytes(Model::load(file, {.recipe = "auto"})), memory.full) << type;
    for (const DType head : {DType::kQ8_0, DType::kF16}) {
      options.head_dtype = head;
      test::write_tiny_gguf(file, options);
      const MemoryEstimate mixed = inspect_model(file).memory;
      EXPECT_EQ(mixed.mxfp4 > 0, head == DType::kF16) << type;
      EXPECT_EQ(weight_bytes(Model::load(file, {.recipe = "auto"})), mixed.full + mixed.mxfp4) << type;
    }
  }
}

TEST(Weights, AreReadAsTheModelHasThem) {
  const Model model = test::load_model(test::draft_model(), {"full", "mxfp4"});
  EXPECT_EQ(resolved_reading(model, "full"), "bf16");
  EXPECT_EQ(resolved_reading(model, "mxfp4-w4a8"), "mxfp4-w4a8");
  EXPECT_THROW(resolved_reading(model, "int4-w4a16"), Error);
  expect_bad_input([&] { resolved_reading(model, "int3"); }, {"int3"});
}

TEST(Weights, AreNeededInTheFormatsThatLoadingPacks) {
  EXPECT_THAT(needed_formats(test::draft_model(), load_recipe("plain")), ElementsAre("full"));
  EXPECT_THAT(needed_formats(test::draft_model(), load_recipe("w4a16")), ElementsAre("int4"));
  EXPECT_THROW(needed_formats(test::draft_model(), load_recipe("qspec-atom")), Error);
}

TEST(Formats, AreKnownByName) {
  for (const std::string& name : format_names()) EXPECT_NO_THROW(require_format(name, "here"));
  expect_bad_input([] { require_format("full", "here"); }, {"here", "full", "bf16"});
  EXPECT_EQ(format_of_reading("mxfp4-w4a8", "here"), "mxfp4");
  EXPECT_EQ(format_of_reading("full", "here"), "full");
  expect_bad_input([] { format_of_reading("mxfp5", "here"); }, {"here", "mxfp5"});
}

}  // namespace
}  // namespace verbatim
