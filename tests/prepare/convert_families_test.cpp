#include <gtest/gtest.h>

#include <filesystem>

#include "checkpoint/gguf.h"
#include "checkpoint/safetensors.h"
#include "prepare/converted_model.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::expect_bad_input;
using test::expect_same_tensors;
using test::family_options;
using test::logits_of;
using test::same_bytes;
using test::TinyModelOptions;

constexpr const char* kFamilies[] = {"llama",     "mistral", "qwen2",  "qwen3",       "smollm3", "granite",
                                     "olmo2",     "phi3",    "gemma2", "gemma3_text", "glm4",    "mixtral",
                                     "qwen3_moe", "gpt_oss", "gpt2",   "starcoder2"};

class ConvertFamilies : public testing::TestWithParam<const char*> {};

TEST_P(ConvertFamilies, KeepEveryByteOfAFolderThroughAGgufFile) {
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    SCOPED_TRACE(dtype_name(dtype));
    const test::TemporaryFolder folder;
    TinyModelOptions options = family_options(GetParam());
    options.dtype = dtype;
    const fs::path original = folder.path() / "original";
    test::write_tiny_llama(original, options);
    const auto there = convert_model(original, folder.path() / "model.gguf");
    ASSERT_TRUE(there);
    EXPECT_EQ(there->kind, "gguf");
    const auto back = convert_model(folder.path() / "model.gguf", folder.path() / "back");
    ASSERT_TRUE(back);
    EXPECT_EQ(back->kind, "folder");
    EXPECT_EQ(back->widened, 0);
    const std::vector<float> expected = logits_of(original);
    EXPECT_TRUE(same_bytes(logits_of(folder.path() / "model.gguf"), expected));
    EXPECT_TRUE(same_bytes(logits_of(folder.path() / "back"), expected));
    expect_same_tensors(original, folder.path() / "back");
  }
}

TEST_P(ConvertFamilies, KeepEveryByteOfAGgufFileThroughAFolder) {
  const test::TemporaryFolder folder;
  const fs::path original = folder.path() / "original.gguf";
  test::write_tiny_gguf(original, family_options(GetParam()));
  ASSERT_TRUE(convert_model(original, folder.path() / "folder"));
  ASSERT_TRUE(convert_model(folder.path() / "folder", folder.path() / "back.gguf"));
  const std::vector<float> expected = logits_of(original);
  EXPECT_TRUE(same_bytes(logits_of(folder.path() / "folder"), expected));
  EXPECT_TRUE(same_bytes(logits_of(folder.path() / "back.gguf"), expected));
  expect_same_tensors(original, folder.path() / "back.gguf");
}

INSTANTIATE_TEST_SUITE_P(Each, ConvertFamilies, testing::ValuesIn(kFamilies),
                         [](const auto& tested) { return std::string(tested.param); });

class ConvertFamily : public test::ConvertTest {
 protected:
  /// A GGUF file of a gpt-oss.
  fs::path write_gpt_oss(DType dtype = DType::kBF16) const {
    const fs::path gguf = folder_.path() / "oss.gguf";
    TinyModelOptions options = family_options("gpt_oss");
    options.dtype = dtype;
    test::write_tiny_gguf(gguf, options);
    return gguf;
  }
};

TEST_F(ConvertFamily, OptIsRefusedAsGgufHasNoLikeOfIt) {
  TinyModelOptions options;
  options.model_type = "opt";
  options.kv_heads = options.heads;
  write(options);
  expect_refused(model_, {"model: an opt model cannot be converted", "GGUF has no architecture for it"});
}

TEST_F(ConvertFamily, Gpt2GetsTheNamesAndTheRowsOfInputsOfItsFolders) {
  TinyModelOptions options = family_options("gpt2");
  options.tied = true;
  options.layers = 1;
  const fs::path gguf = folder_.path() / "m.gguf";
  test::write_tiny_gguf(gguf, options);
  ASSERT_TRUE(convert_model(gguf, folder_.path() / "folder"));
  const SafetensorsModel folder = open_safetensors(folder_.path() / "folder");
  EXPECT_FALSE(folder.tensors.contains("lm_head.weight"));
  const TensorView& turned = folder.tensors.at("transformer.h.0.attn.c_attn.weight");
  EXPECT_EQ(turned.shape, (std::vector<int64_t>{128, 384}));
  const GgufFile file = open_gguf(gguf);
  const TensorView& original = file.tensors.at("blk.0.attn_qkv.weight");
  std::vector<float> input(384);
  std::vector<float> output(128);
  turned.read_row(5, input);
  original.read_row(300, output);
  EXPECT_EQ(input[300], output[5]);
}

TEST_F(ConvertFamily, Gpt2TurnsMatricesThatAreWidened) {
  TinyModelOptions options = family_options("gpt2");
  options.dtype = DType::kQ8_0;
  options.layers = 1;
  const fs::path gguf = folder_.path() / "m.gguf";
  test::write_tiny_gguf(gguf, options);
  ASSERT_TRUE(convert_model(gguf, folder_.path() / "folder", {.widen = "f32"}));
  const Checkpoint original = open_checkpoint(gguf);
  const Checkpoint folder = open_checkpoint(folder_.path() / "folder");
  const std::string name = "h.0.attn.c_attn.weight";
  ASSERT_EQ(folder.tensors.at(name).dtype, DType::kF32);
  std::vector<float> expected(128);
  std::vector<float> widened(128);
  for (int64_t r = 0; r < 384; ++r) {
    original.tensors.at(name).read_row(r, expected);
    folder.tensors.at(name).read_row(r, widened);
    ASSERT_EQ(widened, expected) << r;
  }
}

TEST_F(ConvertFamily, Gpt2HasItsPositionsInF32InAGgufFile) {
  write(family_options("gpt2"));
  ASSERT_TRUE(convert_model(model_, folder_.path() / "m.gguf"));
  const GgufFile file = open_gguf(folder_.path() / "m.gguf");
  EXPECT_EQ(file.tensors.at("position_embd.weight").dtype, DType::kF32);
  EXPECT_EQ(file.tensors.at("blk.0.ffn_up.weight").dtype, DType::kBF16);
  EXPECT_FALSE(file.metadata.contains("gpt2.rope.freq_base")) << "other programs would not know it";
}

TEST_F(ConvertFamily, Gpt2IsRefusedWhereGgufCannotStateIt) {
  write(family_options("gpt2"));
  set("activation_function", "relu");
  expect_refused(model_, {"GGUF cannot state", "activation", "relu"});
  set("activation_function", "gelu_new");
  set("scale_attn_weights", false);
  expect_refused(model_, {"GGUF cannot state", "scales"});
}

TEST_F(ConvertFamily, StarCoder2KeepsThatItHasNeitherWindowNorBiases) {
  TinyModelOptions options = family_options("starcoder2");
  options.sliding_window.reset();
  options.tied = true;
  write(options);
  set("use_bias", false);
  std::vector<test::NamedTensor> tensors = test::tiny_tensors(options);
  std::erase_if(tensors, [](const test::NamedTensor& tensor) {
    return tensor.name.ends_with("proj.bias") || tensor.name.ends_with("c_fc.bias");
  });
  std::ofstream(model_ / "model.safetensors", std::ios::binary)
      << test::safetensors_file(tensors, DType::kBF16);
  ASSERT_TRUE(convert_model(model_, folder_.path() / "m.gguf"));
  ASSERT_TRUE(convert_model(folder_.path() / "m.gguf", folder_.path() / "back"));
  EXPECT_TRUE(same_bytes(logits_of(folder_.path() / "m.gguf"), logits_of(model_)));
  expect_same_tensors(model_, folder_.path() / "back");
  EXPECT_FALSE(open_checkpoint(folder_.path() / "back").config.mlp_bias);
}

TEST_F(ConvertFamily, GptOssKeepsItsBlocksWhateverElseIsWidened) {
  const fs::path gguf = write_gpt_oss(DType::kQ8_0);
  expect_refused(gguf, {"oss.gguf", "Q8_0", "--widen"});
  const auto widened = convert_model(gguf, folder_.path() / "wide", {.widen = "bf16"});
  ASSERT_TRUE(widened);
  EXPECT_EQ(widened->widened, 10) << "matrices of attention, the embedding and the output";
  const Checkpoint original = open_checkpoint(gguf);
  const Checkpoint folder = open_checkpoint(folder_.path() / "wide");
  const std::string expert = "model.layers.1.mlp.experts.10.";
  const TensorView& gate = original.tensors.at(expert + "gate_proj.weight");
  const TensorView& up = original.tensors.at(expert + "up_proj.weight");
  const TensorView& both = folder.tensors.at(expert + "gate_up_proj.weight");
  EXPECT_EQ(both.dtype, DType::kMXFP4Apart);
  std::vector<float> row(128);
  std::vector<float> other(128);
  for (int64_t r = 0; r < both.rows(); ++r) {
    both.read_row(r, row);
    (r % 2 == 0 ? gate : up).read_row(r / 2, other);
    ASSERT_EQ(row, other) << r;
  }
}

TEST_F(ConvertFamily, GptOssIsRefusedWithExpertsInOtherTypes) {
  const fs::path gguf = folder_.path() / "oss.gguf";
  TinyModelOptions options = family_options("gpt_oss");
  options.expert_down_dtype = DType::kQ8_0;
  test::write_tiny_gguf(gguf, options);
  const std::initializer_list<std::string> words = {"oss.gguf", "experts.0.down_proj.weight", "in Q8_0",
                                                    "in MXFP4 alone"};
  expect_refused(gguf, words);
  expect_bad_input([&] { convert_model(gguf, folder_.path() / "wide", {.widen = "f32"}); }, words);
}

TEST_F(ConvertFamily, GptOssIsRefusedWithScalesOfTwoMeanings) {
  const fs::path gguf = write_gpt_oss();
  ASSERT_TRUE(convert_model(gguf, folder_.path() / "folder"));
  const auto spoil = [](const fs::path& file, std::span<const std::byte> scales) {
    std::string bytes = test::read_file(file);
    const size_t place = bytes.find(std::string(reinterpret_cast<const char*>(scales.data()), scales.size()));
    ASSERT_NE(place, std::string::npos);
    bytes[place] = '\xFF';
    std::ofstream(file, std::ios::binary) << bytes;
  };
  {
    const GgufFile file = open_gguf(gguf);
    const std::vector<std::byte> block(file.tensors.at("blk.0.ffn_up_exps.weight").data.begin(),
                                       file.tensors.at("blk.0.ffn_up_exps.weight").data.begin() + 17);
    spoil(gguf, block);
  }
  expect_refused(gguf, {"oss.gguf", "experts.0.", "scale of 255", "NaN"});
  const fs::path folder = folder_.path() / "folder";
  {
    const SafetensorsModel model = open_safetensors(folder);
    const auto scales = model.tensors.at("model.layers.0.mlp.experts.down_proj_scales").data;
    const std::vector<std::byte> all(scales.begin(), scales.end());
    spoil(folder / "model.safetensors", all);
  }
  expect_refused(folder, {"experts.0.down_proj", "scale of 255", "NaN"});
}

TEST_F(ConvertFamily, GptOssIsRefusedWhereGgufCannotStateIt) {
  write(family_options("gpt_oss"));
  set("swiglu_limit", 5.0);
  expect_refused(model_, {"GGUF cannot state", "activation_limit", "5"});
  set("swiglu_limit", 7.0);
  json scaling = json::parse(test::read_file(model_ / "config.json"))["rope_scaling"];
  scaling["truncate"] = true;
  set("rope_scaling", scaling);
  expect_refused(model_, {"GGUF cannot state that rope_scaling.yarn.truncate is true"});
}

TEST_F(ConvertFamily, GptOssKeepsOtherWindowsAndPositions) {
  TinyModelOptions options = family_options("gpt_oss");
  options.layers = 3;
  write(options);
  for (const bool windows : {true, false}) {
    SCOPED_TRACE(windows);
    const char* const kind = windows ? "sliding_attention" : "full_attention";
    set("layer_types", {kind, kind, "full_attention"});
    set("rope_scaling", {{"rope_type", "default"}});
    fs::remove(folder_.path() / "m.gguf");
    fs::remove_all(folder_.path() / "back");
    ASSERT_TRUE(convert_model(model_, folder_.path() / "m.gguf"));
    ASSERT_TRUE(convert_model(folder_.path() / "m.gguf", folder_.path() / "back"));
    EXPECT_TRUE(same_bytes(logits_of(folder_.path() / "m.gguf"), logits_of(model_)));
    expect_same_tensors(model_, folder_.path() / "back");
  }
}

}  // namespace
}  // namespace verbatim
