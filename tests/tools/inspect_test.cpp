#include "verbatim/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "checkpoint/bad_input.h"
#include "support/quantized_folder.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "verbatim/pack.h"

namespace verbatim {
namespace {

using test::expect_bad_input;
using ::testing::SizeIs;

TEST(InspectModel, DescribesACheckpointWithItsTensorsAndVocabulary) {
  const ModelReport report = inspect_model(test::draft_model());
  EXPECT_EQ(report.file_format, "safetensors");
  EXPECT_EQ(report.architecture, "llama");
  EXPECT_EQ(report.files, 1);
  EXPECT_EQ(report.rope_scaling, "none");
  EXPECT_EQ(report.sliding_window, std::nullopt);
  EXPECT_EQ(report.packed, std::nullopt);
  int64_t weights = 0;
  int64_t in_matrices = 0;
  for (const TensorReport& tensor : report.tensors) {
    int64_t elements = 1;
    for (const int64_t length : tensor.shape) elements *= length;
    EXPECT_EQ(tensor.bytes, 2 * elements) << tensor.name;
    weights += elements;
    if (tensor.shape.size() == 2) in_matrices += elements;
  }
  EXPECT_EQ(report.parameters, weights);
  EXPECT_EQ(report.types.at("BF16").bytes, 2 * weights);
  EXPECT_THAT(report.tensors, SizeIs(static_cast<size_t>(report.types.at("BF16").count)));
  ASSERT_TRUE(report.vocabulary);
  EXPECT_EQ(report.vocabulary->kind, "sentencepiece");
  EXPECT_EQ(report.vocabulary->tokens, report.vocab_size);
  EXPECT_EQ(report.memory.full, 2 * in_matrices);
  EXPECT_EQ(report.memory.kv_per_token, 4 * report.layers * report.kv_heads * report.head_dim);
  EXPECT_EQ(report.memory.kv_context, report.context * report.memory.kv_per_token);
}

TEST(InspectModel, SaysHowManyBitsQuantizedWeightsHaveInTheFileAndInMemory) {
  const test::TemporaryFolder folder;
  const test::TinyModelOptions options;
  const int64_t quantized = options.layers * (2 * 128 * 128 + 2 * 64 * 128 + 3 * 128 * 256);
  const int64_t rest = 256 * 128;  // the output matrix; the embedding is not packed
  const auto inspected = [&](const test::Quantizing& how) {
    test::quantized_folder(how).write(folder.path());
    return inspect_model(folder.path());
  };
  const ModelReport gptq = inspected({.method = "gptq", .bits = 4, .group_size = 64});
  EXPECT_EQ(gptq.types.at("GPTQ4").weights, quantized);
  // 4 bits, and for every 64 of them a scale and a zero point; the index has 32 bits for every input.
  const int64_t inputs = options.layers * (6 * 128 + 256);
  EXPECT_EQ(gptq.types.at("GPTQ4").bytes, quantized / 2 + quantized / 64 * 5 / 2 + inputs * 4);
  EXPECT_EQ(gptq.memory.full, quantized * 17 / 16 + 2 * rest);
  EXPECT_EQ(inspected({.method = "gptq", .bits = 4, .group_size = 128}).memory.full,
            quantized / 2 + quantized / 128 * 2 + 2 * rest);
  EXPECT_EQ(inspected({.method = "awq", .bits = 4, .group_size = 128, .symmetric = false}).memory.full,
            quantized / 2 + quantized / 128 * 3 + 2 * rest);
  const ModelReport fp8 =
      inspected({.method = "fp8", .block_rows = 64, .block_columns = 64, .scale_type = "F32"});
  EXPECT_EQ(fp8.types.at("F8_E4M3").bytes, quantized + quantized / 4096 * 4);
  EXPECT_NEAR(fp8.types.at("F8_E4M3").bits_per_weight(), 8.01, 0.005);
  EXPECT_EQ(fp8.memory.full, quantized * 2 + 2 * rest);
}

TEST(InspectModel, SaysWhatSetsAFamilyApart) {
  const test::TemporaryFolder folder;
  const auto inspected = [&](const std::string& family) {
    test::TinyModelOptions options{.model_type = family, .layers = 4};
    if (family.starts_with("gemma")) options.sliding_window = 16;
    test::write_tiny_llama(folder.path() / family, options);
    const ModelReport report = inspect_model(folder.path() / family);
    EXPECT_EQ(report.architecture, family);
    return report;
  };
  EXPECT_EQ(inspected("llama").head_norm, "none");
  EXPECT_EQ(inspected("qwen3").head_norm, "per head");
  EXPECT_EQ(inspected("llama").unrotated_layers, std::vector<int32_t>());
  EXPECT_EQ(inspected("smollm3").unrotated_layers, std::vector<int32_t>{3});
  EXPECT_THAT(inspected("llama").scales, SizeIs(0));
  EXPECT_EQ(inspected("granite").scales.at("logits"), 2.0f);
  EXPECT_EQ(inspected("llama").block_norms, "before");
  EXPECT_EQ(inspected("olmo2").block_norms, "after");
  EXPECT_EQ(inspected("llama").rotary_dim, 32);
  EXPECT_EQ(inspected("phi3").rotary_dim, 24);
  EXPECT_EQ(inspected("glm4").block_norms, "both");
  EXPECT_EQ(inspected("glm4").rotary_dim, 16);
  EXPECT_EQ(inspected("llama").score_cap, std::nullopt);
  EXPECT_EQ(inspected("gemma2").score_cap, 2.0f);
  EXPECT_EQ(inspected("gemma2").windowless_layers, (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(inspected("gemma3_text").window_rope_theta, 10000.0f);
  for (const char* family : {"gpt2", "starcoder2", "opt"}) {
    EXPECT_TRUE(inspected(family).layer_norm && inspected(family).plain_mlp);
  }
  EXPECT_FALSE(inspected("llama").layer_norm || inspected("llama").plain_mlp);
  EXPECT_EQ(inspected("opt").activation, "relu");
  EXPECT_TRUE(inspected("gpt2").learned_positions);
  EXPECT_FALSE(inspected("starcoder2").learned_positions);
  EXPECT_EQ(inspected("llama").experts, 0);
  EXPECT_EQ(inspected("mixtral").experts, 5);
  EXPECT_EQ(inspected("mixtral").experts_used, 2);
  EXPECT_EQ(inspected("qwen3_moe").expert_intermediate_size, 128);
}

TEST(InspectModel, CountsEveryExpertInAFileOfAnyKind) {
  const test::TemporaryFolder folder;
  const test::TinyModelOptions options{.model_type = "qwen3_moe", .layers = 3, .dense_layers = {1}};
  test::write_tiny_llama(folder.path() / "model", options);
  ASSERT_TRUE(
      pack_model(folder.path() / "model", folder.path() / "model.vbt", {.formats = {"full", "mxfp4"}}));
  const ModelReport own = inspect_model(folder.path() / "model");
  const ModelReport packed = inspect_model(folder.path() / "model.vbt");
  int64_t parameters = 0;
  for (const test::NamedTensor& tensor : test::tiny_tensors(options)) {
    parameters += static_cast<int64_t>(tensor.values.size());
  }
  for (const ModelReport* const report : {&own, &packed}) {
    EXPECT_EQ(report->parameters, parameters);
    EXPECT_EQ(report->dense_layers, std::vector<int32_t>{1});
  }
  EXPECT_EQ(packed.memory.full, own.memory.full);
  EXPECT_EQ(packed.memory.mxfp4, own.memory.mxfp4);
  EXPECT_EQ(packed.memory.pass, own.memory.pass);
  EXPECT_LT(own.memory.pass, own.memory.full);
}

TEST(InspectModel, DescribesAModelWithoutAVocabulary) {
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model", {.sliding_window = std::nullopt, .shards = 2});
  const ModelReport report = inspect_model(folder.path() / "model");
  EXPECT_EQ(report.vocabulary, std::nullopt);
  EXPECT_EQ(report.files, 2);
}

TEST(InspectModel, ComparesThePlanesOfAPackedFileOnlyWhenAsked) {
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model");
  const std::filesystem::path file = folder.path() / "model.vbt";
  ASSERT_TRUE(pack_model(folder.path() / "model", file, {.formats = {"full", "int4"}, .threads = 2}));
  const ModelReport own = inspect_model(folder.path() / "model");
  const ModelReport report = inspect_model(file);
  EXPECT_EQ(report.file_format, "vbt");
  EXPECT_EQ(report.parameters, own.parameters);
  EXPECT_EQ(report.memory.full, own.memory.full);
  EXPECT_THAT(report.tensors, SizeIs(0));
  ASSERT_TRUE(report.packed);
  EXPECT_EQ(report.packed->source, "safetensors");
  EXPECT_EQ(report.packed->quantization, "none");
  ASSERT_THAT(report.packed->formats, SizeIs(2));
  EXPECT_EQ(report.packed->formats[0].format, "bf16");
  EXPECT_EQ(report.packed->formats[0].bits_per_weight(), 16.0);
  EXPECT_EQ(report.packed->formats[1].format, "int4");
  EXPECT_FALSE(report.packed->planes.empty());
  EXPECT_FALSE(report.packed->verified);

  std::vector<double> fractions;
  InspectOptions verifying{.verify = true};
  verifying.progress = [&](double fraction) { fractions.push_back(fraction); };
  EXPECT_TRUE(inspect_model(file, verifying).packed->verified);
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
  EXPECT_GT(fractions.back(), 0.9);
  verifying.cancelled = [] { return true; };
  EXPECT_FALSE(inspect_model(file, verifying).packed->verified);

  std::string bytes = test::read_file(file);
  bytes[report.packed->planes.back().offset] ^= 1;
  const std::filesystem::path damaged = folder.write("damaged.vbt", bytes);
  EXPECT_FALSE(inspect_model(damaged).packed->verified);
  expect_bad_input([&] { inspect_model(damaged, {.verify = true}); },
                   {"damaged.vbt", report.packed->planes.back().name});
}

TEST(InspectModel, RefusesToVerifyWhatIsNotPacked) {
  try {
    inspect_model(test::draft_model(), {.verify = true});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace verbatim
