#include "verbatim/convert.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/gguf.h"
#include "prepare/converted_model.h"
#include "prepare/converted_tensors.h"
#include "support/quantized_folder.h"

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

class Convert : public test::ConvertTest {};

TEST_F(Convert, KeepsScaledPositions) {
  write();
  for (const char* scaling :
       {R"({"rope_type": "linear", "factor": 4.0})",
        R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 24.0})",
        R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16})"}) {
    SCOPED_TRACE(scaling);
    set("rope_scaling", json::parse(scaling));
    fs::remove(folder_.path() / "m.gguf");
    fs::remove_all(folder_.path() / "back");
    ASSERT_TRUE(convert_model(model_, folder_.path() / "m.gguf"));
    ASSERT_TRUE(convert_model(folder_.path() / "m.gguf", folder_.path() / "back"));
    EXPECT_TRUE(same_bytes(logits_of(folder_.path() / "m.gguf"), logits_of(model_)));
    expect_same_tensors(model_, folder_.path() / "back");
  }
}

TEST_F(Convert, KeepsLongRope) {
  write({.model_type = "phi3"});
  std::vector<float> factors;
  for (int i = 0; i < 12; ++i) factors.push_back(1.0f + 0.3f * static_cast<float>(i));
  set("original_max_position_embeddings", 64);
  for (const bool derived : {false, true}) {
    SCOPED_TRACE(derived);
    json scaling = {
        {"type", "longrope"}, {"short_factor", std::vector<float>(12, 1.1f)}, {"long_factor", factors}};
    if (!derived) scaling["attention_factor"] = 1.25;
    set("rope_scaling", scaling);
    fs::remove(folder_.path() / "m.gguf");
    fs::remove_all(folder_.path() / "back");
    ASSERT_TRUE(convert_model(model_, folder_.path() / "m.gguf"));
    ASSERT_TRUE(convert_model(folder_.path() / "m.gguf", folder_.path() / "back"));
    const std::vector<float> expected = logits_of(model_);
    EXPECT_TRUE(same_bytes(logits_of(folder_.path() / "m.gguf"), expected));
    EXPECT_TRUE(same_bytes(logits_of(folder_.path() / "back"), expected));
    expect_same_tensors(model_, folder_.path() / "back");
    const json back = json::parse(test::read_file(folder_.path() / "back" / "config.json"));
    EXPECT_EQ(back["rope_scaling"].contains("attention_factor"), !derived);
  }
}

TEST_F(Convert, StatesTheScalingOfLlama3AsOtherProgramsReadItToo) {
  write();
  set("rope_scaling", {{"rope_type", "llama3"},
                       {"factor", 8.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 16}});
  const fs::path gguf = folder_.path() / "m.gguf";
  ASSERT_TRUE(convert_model(model_, gguf));
  const GgufFile file = open_gguf(gguf);
  const TensorView& divisors = file.tensors.at("rope_freqs.weight");
  EXPECT_EQ(divisors.dtype, DType::kF32);
  ASSERT_EQ(divisors.shape, std::vector<int64_t>{16});
  std::vector<float> values(16);
  divisors.read_row(0, values);
  // The first pair makes 16 / 2π turns in the original context, 2.5465, a number between 1 and 4.
  EXPECT_NEAR(values[0], 1.0 / ((1.0 - 0.5155) / 8.0 + 0.5155), 1e-3);
  EXPECT_EQ(values[15], 8.0f);
  // Without the exact scaling beside them the divisors are all that is known, and no folder can state them.
  std::string bytes = test::read_file(gguf);
  const std::string key = "verbatim.llama3_scaling.";
  for (size_t at; (at = bytes.find(key)) != std::string::npos;) bytes[at] = 'V';
  std::ofstream(folder_.path() / "others.gguf", std::ios::binary) << bytes;
  EXPECT_EQ(open_checkpoint(folder_.path() / "others.gguf").config.rope_frequency_factors, values);
  expect_refused(folder_.path() / "others.gguf", {"cannot state", "rope_frequency_factors"});
  // Divisors of another scaling would be ignored.
  bytes = test::read_file(gguf);
  const float changed = 7.5f;
  const size_t place = bytes.find(std::string(reinterpret_cast<const char*>(values.data()), 64));
  ASSERT_NE(place, std::string::npos);
  bytes.replace(place + 60, 4, reinterpret_cast<const char*>(&changed), 4);
  std::ofstream(folder_.path() / "changed.gguf", std::ios::binary) << bytes;
  expect_bad_input([&] { open_checkpoint(folder_.path() / "changed.gguf"); },
                   {"changed.gguf", "rope_freqs.weight", "verbatim.llama3_scaling."});
}

TEST_F(Convert, RefusesSettingsThatGgufCannotState) {
  write();
  set("rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}});
  expect_refused(model_, {"GGUF cannot state", "rope_scaling", "dynamic"});
  set("rope_scaling", nullptr);
  set("eos_token_id", {2, 3, 4, 5});
  expect_refused(model_, {"GGUF cannot state", "eos_tokens", "[2,3,4,5]"});
}

TEST_F(Convert, KeepsAsManyEndsAsGgufHasNamesFor) {
  write();
  set("eos_token_id", {4, 2, 3});
  ASSERT_TRUE(convert_model(model_, folder_.path() / "m.gguf"));
  const GgufFile file = open_gguf(folder_.path() / "m.gguf");
  EXPECT_EQ(gguf_integer(file, "tokenizer.ggml.eos_token_id"), 4);
  EXPECT_EQ(gguf_integer(file, "tokenizer.ggml.eot_token_id"), 2);
  EXPECT_EQ(gguf_integer(file, "tokenizer.ggml.eom_token_id"), 3);
  ASSERT_TRUE(convert_model(folder_.path() / "m.gguf", folder_.path() / "back"));
  expect_same_tensors(model_, folder_.path() / "back");
}

TEST_F(Convert, RefusesBlocksUnlessTheyAreToBeWidened) {
  TinyModelOptions options;
  options.hidden_size = 256;
  options.heads = 8;
  options.dtype = DType::kQ4_K;
  const fs::path gguf = folder_.path() / "blocks.gguf";
  test::write_tiny_gguf(gguf, options);
  expect_refused(gguf, {"blocks.gguf", "Q4_K", "--widen"});
  const auto wide = convert_model(gguf, folder_.path() / "wide", {.widen = "f32"});
  ASSERT_TRUE(wide);
  EXPECT_GT(wide->widened, 0);
  EXPECT_EQ(wide->rounded, 0);
  const auto narrow = convert_model(gguf, folder_.path() / "narrow", {.widen = "bf16"});
  ASSERT_TRUE(narrow);
  EXPECT_EQ(narrow->widened, wide->widened);
  EXPECT_GT(narrow->rounded, 0);
  // The rows of queries are in another order in a folder.
  const Checkpoint original = open_checkpoint(gguf);
  const Checkpoint widened = open_checkpoint(folder_.path() / "wide");
  for (const char* name : {"model.layers.1.mlp.down_proj.weight", "model.layers.0.self_attn.v_proj.weight"}) {
    const TensorView& a = original.tensors.at(name);
    const TensorView& b = widened.tensors.at(name);
    EXPECT_EQ(b.dtype, DType::kF32);
    std::vector<float> row(static_cast<size_t>(a.columns()));
    std::vector<float> other(row.size());
    for (int64_t r = 0; r < a.rows(); ++r) {
      a.read_row(r, row);
      b.read_row(r, other);
      ASSERT_TRUE(same_bytes(row, other)) << name << ' ' << r;
    }
  }
}

TEST_F(Convert, RefusesBlocksOfOneDimensionUnlessTheyAreToBeWidened) {
  const fs::path gguf = folder_.path() / "vector.gguf";
  test::write_tiny_gguf(gguf, {.dtype = DType::kF32});
  std::string file = test::read_file(gguf);
  const std::string name = "blk.0.attn_norm.weight";
  // Behind the name: the number of dimensions, 1; the size; the type.
  const size_t type = file.find(name) + name.size() + sizeof(uint32_t) + sizeof(uint64_t);
  ASSERT_EQ(file[type], 0);  // F32
  file[type] = 8;            // Q8_0, which takes fewer bytes
  std::ofstream(gguf, std::ios::binary) << file;
  expect_refused(gguf, {"vector.gguf", "input_layernorm", "Q8_0", "--widen"});
  const auto wide = convert_model(gguf, folder_.path() / "wide", {.widen = "f32"});
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->widened, 1);
  EXPECT_EQ(wide->rounded, 0);
  const auto narrow = convert_model(gguf, folder_.path() / "narrow", {.widen = "bf16"});
  ASSERT_TRUE(narrow);
  EXPECT_EQ(narrow->widened, 1);
  EXPECT_GT(narrow->rounded, 0);
}

TEST_F(Convert, MakesPackedFiles) {
  write();
  const fs::path target = folder_.path() / "model.vbt";
  const auto report = convert_model(model_, target);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->kind, "vbt");
  EXPECT_TRUE(is_packed(target));
}

TEST_F(Convert, LeavesNothingWhenItIsCancelled) {
  write();
  const ConvertOptions options{.cancelled = [] { return true; }};
  for (const char* name : {"result.gguf", "result.vbt"}) {
    EXPECT_FALSE(convert_model(model_, folder_.path() / name, options));
    expect_nothing_left(folder_.path() / "result");
  }
  ASSERT_TRUE(convert_model(model_, folder_.path() / "m.gguf"));
  EXPECT_FALSE(convert_model(folder_.path() / "m.gguf", folder_.path() / "result", options));
  expect_nothing_left(folder_.path() / "result");
}

TEST_F(Convert, RefusesQuantizedSafetensors) {
  test::quantized_folder({.method = "fp8"}).write(model_);
  expect_refused(model_, {"model: tensor", "which GGUF does not have"});
}

TEST_F(Convert, RefusesTensorsOfWhichGgufHasNoLike) {
  write();
  const Checkpoint checkpoint = open_checkpoint(model_);
  EXPECT_EQ(gguf_name_of("model.layers.1.mlp.up_proj.weight", checkpoint), "blk.1.ffn_up.weight");
  expect_bad_input([&] { gguf_name_of("model.layers.1.mlp.extra.weight", checkpoint); },
                   {"tensor model.layers.1.mlp.extra.weight", "no counterpart in a GGUF file of a llama"});
}

TEST_F(Convert, RefusesExpertsOfDifferentTypes) {
  const fs::path gguf = folder_.path() / "mixed.gguf";
  test::write_tiny_gguf(gguf, {.model_type = "mixtral", .stacked_experts = false});
  std::string file = test::read_file(gguf);
  // Behind the name: the number of dimensions, 2; the two sizes; the type. F16 takes as many bytes as BF16.
  const std::string name = "blk.0.ffn_down.1.weight";
  const size_t type = file.find(name) + name.size() + sizeof(uint32_t) + 2 * sizeof(uint64_t);
  ASSERT_EQ(file[type], 30);
  file[type] = 1;
  std::ofstream(gguf, std::ios::binary) << file;
  ASSERT_TRUE(convert_model(gguf, folder_.path() / "folder")) << "folders have a type for each tensor";
  expect_refused(folder_.path() / "folder",
                 {"block_sparse_moe.experts.0.w2.weight", "in BF16", "in F16", "one type"});
}

TEST_F(Convert, RefusesWhatAMixtureOfExpertsCannotSayInGguf) {
  write({.model_type = "qwen3_moe", .normalized_experts = false});
  expect_refused(model_, {"GGUF cannot state that experts.normalized is false"});
  fs::remove_all(model_);
  write({.model_type = "qwen3_moe", .layers = 3, .dense_layers = {1}});
  expect_refused(model_, {"GGUF cannot state", "dense_layers", "[1]"});
  fs::remove_all(model_);
  write({.model_type = "qwen3_moe", .sliding_window = 16});
  expect_refused(model_, {"GGUF cannot state", "sliding_window", "16"});
}

TEST_F(Convert, RefusesBiasesOfRotatedMatrices) {
  const fs::path gguf = folder_.path() / "biased.gguf";
  test::write_tiny_gguf(gguf, {.model_type = "qwen2"});
  std::string file = test::read_file(gguf);
  for (size_t at; (at = file.find("qwen2")) != std::string::npos;) file.replace(at, 5, "llama");
  std::ofstream(gguf, std::ios::binary) << file;
  expect_refused(gguf, {"biased.gguf", "proj.bias", "a bias of a rotated matrix"});
}

TEST_F(Convert, RefusesNormsThatLoseBitsInAFolder) {
  const fs::path gguf = folder_.path() / "small.gguf";
  test::write_tiny_gguf(gguf, family_options("gemma2"));
  std::vector<float> values(128);
  open_gguf(gguf).tensors.at("output_norm.weight").read_row(0, values);
  const std::string stored(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  std::string bytes = test::read_file(gguf);
  const size_t place = bytes.find(stored);
  ASSERT_NE(place, std::string::npos);
  const float small = 1e-9f;  // 1 is taken away, and gives 0 when it is added again
  bytes.replace(place, sizeof(small), reinterpret_cast<const char*>(&small), sizeof(small));
  std::ofstream(gguf, std::ios::binary) << bytes;
  expect_refused(gguf, {"small.gguf", "model.norm.weight", "stored less 1", "loses bits"});
}

TEST_F(Convert, RefusesKindsAndTypesThatDoNotExist) {
  write();
  const auto expect_usage = [&](const fs::path& target, const ConvertOptions& options, const char* words) {
    try {
      convert_model(model_, target, options);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
    expect_nothing_left(target);
  };
  expect_usage(folder_.path() / "result", {.to = "pdf"}, "cannot be converted to \"pdf\"");
  expect_usage(folder_.path() / "result", {.widen = "f64"}, "cannot be widened to \"f64\"");
  expect_usage(folder_.path() / "result.gguf", {.widen = "f32"}, "only matrices of a GGUF file");
}

TEST_F(Convert, OverwritesNothing) {
  write();
  std::ofstream(folder_.path() / "taken.gguf") << "mine";
  expect_bad_input([&] { convert_model(model_, folder_.path() / "taken.gguf"); },
                   {"taken.gguf exists already"});
  EXPECT_EQ(test::read_file(folder_.path() / "taken.gguf"), "mine");
  test::write_tiny_gguf(folder_.path() / "m.gguf");
  fs::create_directory(folder_.path() / "taken");
  std::ofstream(folder_.path() / "taken" / "config.json") << "mine";
  expect_bad_input([&] { convert_model(folder_.path() / "m.gguf", folder_.path() / "taken"); },
                   {"taken exists already and is not empty"});
  EXPECT_EQ(test::read_file(folder_.path() / "taken" / "config.json"), "mine");
}

TEST_F(Convert, RefusesTheKindThatIsThereAlready) {
  write();
  expect_bad_input([&] { convert_model(model_, folder_.path() / "copy"); }, {"is a folder already"});
  test::write_tiny_gguf(folder_.path() / "m.gguf");
  expect_bad_input([&] { convert_model(folder_.path() / "m.gguf", folder_.path() / "n.gguf"); },
                   {"is a GGUF file already"});
  EXPECT_TRUE(convert_model(model_, folder_.path() / "named.bin", {.to = "gguf"}));
}

}  // namespace
}  // namespace verbatim
