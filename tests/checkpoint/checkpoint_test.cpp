#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/bad_input.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::expect_bad_input;
using test::NamedTensor;
using test::TemporaryFolder;
using test::TinyModelOptions;

std::vector<float> row_of(const Checkpoint& checkpoint, const std::string& name, int64_t r) {
  const TensorView& tensor = checkpoint.tensors.at(name);
  std::vector<float> row(static_cast<size_t>(tensor.columns()));
  tensor.read_row(r, row);
  return row;
}

/// Everything that was written is there as it was, up to the rounding of the dtype.
void expect_tensors(const Checkpoint& checkpoint, const TinyModelOptions& options, float tolerance) {
  for (const NamedTensor& tensor : test::tiny_tensors(options)) {
    ASSERT_TRUE(checkpoint.has(tensor.name)) << tensor.name;
    ASSERT_EQ(checkpoint.tensors.at(tensor.name).shape, tensor.shape) << tensor.name;
    const int64_t columns = tensor.shape.back();
    const std::vector<float> row = row_of(checkpoint, tensor.name, 0);
    for (int64_t c = 0; c < columns; ++c) {
      const float least = tolerance > 0.0f ? 0x1p-25f : 0.0f;  // half of the smallest number of F16
      ASSERT_NEAR(row[c], tensor.values[c], tolerance * std::abs(tensor.values[c]) + least) << tensor.name;
    }
  }
}

/// For tests that write many models.
TinyModelOptions very_small(const std::string& model_type = "llama") {
  TinyModelOptions options;
  options.model_type = model_type;
  options.hidden_size = 8;
  options.intermediate_size = 16;
  options.head_dim = 8;
  options.vocab_size = 16;
  return options;
}

void edit_config(const fs::path& folder, const std::string& key, const json& value) {
  json config = json::parse(test::read_file(folder / "config.json"));
  config[key] = value;
  std::ofstream(folder / "config.json") << config;
}

/// Writes the tiny model's weights again after a change.
template <typename Change>
void edit_tensors(const fs::path& folder, const TinyModelOptions& options, Change&& change) {
  std::vector<NamedTensor> tensors = test::tiny_tensors(options);
  change(tensors);
  std::ofstream(folder / "model.safetensors", std::ios::binary)
      << test::safetensors_file(tensors, options.dtype);
}

TEST(Checkpoint, OpensEveryFamilyAndDtype) {
  for (const char* type : {"llama", "mistral", "qwen2", "qwen3", "smollm3", "granite", "olmo2", "phi3",
                           "glm4", "mixtral", "qwen3_moe", "starcoder2", "opt"}) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      const TemporaryFolder folder;
      const TinyModelOptions options = {.model_type = type, .dtype = dtype};
      test::write_tiny_llama(folder.path(), options);
      const Checkpoint checkpoint = open_checkpoint(folder.path());
      EXPECT_EQ(checkpoint.format, "safetensors");
      EXPECT_EQ(checkpoint.path, folder.path());
      EXPECT_EQ(architecture_name(checkpoint.config.architecture), type);
      EXPECT_EQ(checkpoint.tokenizer.kind, TokenizerSource::Kind::kNone);
      const float tolerance = dtype == DType::kF32 ? 0.0f : dtype == DType::kF16 ? 0x1p-10f : 0x1p-8f;
      expect_tensors(checkpoint, options, tolerance);
    }
  }
}

TEST(Checkpoint, OpensTiedWindowedAndShardedModels) {
  const TemporaryFolder folder;
  const TinyModelOptions options = {.model_type = "mistral", .sliding_window = 16, .tied = true, .shards = 4};
  test::write_tiny_llama(folder.path(), options);
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  EXPECT_TRUE(checkpoint.config.tied_embeddings);
  EXPECT_EQ(checkpoint.config.sliding_window, 16);
  EXPECT_EQ(checkpoint.files.size(), 4u);
  EXPECT_FALSE(checkpoint.has("lm_head.weight"));
  expect_tensors(checkpoint, options, 0x1p-8f);
}

TEST(Checkpoint, OpensTheSameModelAsGguf) {
  for (const char* type :
       {"llama", "qwen2", "qwen3", "smollm3", "granite", "olmo2", "phi3", "glm4", "mixtral", "qwen3_moe"}) {
    for (const DType dtype : {DType::kF32, DType::kQ8_0}) {
      const TemporaryFolder folder;
      const TinyModelOptions options = {.model_type = type, .dtype = dtype};
      test::write_tiny_gguf(folder.path() / "tiny.gguf", options);
      const Checkpoint checkpoint = open_checkpoint(folder.path() / "tiny.gguf");
      EXPECT_EQ(checkpoint.format, "gguf");
      const Architecture architecture = checkpoint.config.architecture;
      EXPECT_EQ(checkpoint.config.rope_interleaved,
                architecture == Architecture::kLlama || architecture == Architecture::kSmolLm3 ||
                    architecture == Architecture::kGranite || architecture == Architecture::kGlm4 ||
                    architecture == Architecture::kMixtral);
      EXPECT_EQ(architecture_name(architecture), type);
      for (const NamedTensor& tensor : test::tiny_tensors(options)) {
        const std::vector<float> row = row_of(checkpoint, tensor.name, 0);  // row 0 stays where it is
        for (size_t c = 0; c < row.size(); ++c) {
          ASSERT_NEAR(row[c], tensor.values[c], dtype == DType::kF32 ? 0.0f : 0.002f) << tensor.name;
        }
      }
      // The second half of a head comes to lie between the rows of the first, where Hugging Face has halves.
      const std::string name = "model.layers.0.self_attn.q_proj.weight";
      for (const NamedTensor& query : test::tiny_tensors(options)) {
        if (query.name != name) continue;
        const std::vector<float> moved = row_of(checkpoint, name, 1);
        const bool moves = checkpoint.config.rope_interleaved && !hugging_face_interleaves(architecture);
        const int64_t from = moves ? options.head_dim / 2 : 1;
        EXPECT_NEAR(moved[5], query.values[from * options.hidden_size + 5], 0.002f);
      }
    }
  }
}

TEST(Checkpoint, KeepsNanWeights) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path(), {.nan_weight = true});
  EXPECT_TRUE(
      std::isnan(row_of(open_checkpoint(folder.path()), "model.layers.0.mlp.down_proj.weight", 0)[0]));
}

TEST(Checkpoint, TakesTheFolderOfASafetensorsFile) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path());
  EXPECT_EQ(open_checkpoint(folder.path() / "model.safetensors").path, folder.path());
}

TEST(Checkpoint, RefusesAModelTruncatedAnywhere) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path(), very_small());
  const std::string whole = test::read_file(folder.path() / "model.safetensors");
  for (size_t length = 1; length < whole.size(); length = length * 9 / 8 + 1) {
    folder.write("model.safetensors", whole.substr(0, length));
    expect_bad_input([&] { open_checkpoint(folder.path()); }, {"model.safetensors"});
  }
  folder.write("model.safetensors", "");
  expect_bad_input([&] { open_checkpoint(folder.path()); }, {"model.safetensors", "empty"});
}

TEST(Checkpoint, NamesAMissingTensor) {
  const TemporaryFolder folder;
  for (const char* type : {"qwen2", "qwen3", "olmo2", "phi3", "gemma3_text", "glm4", "mixtral", "qwen3_moe",
                           "gpt2", "starcoder2", "opt"}) {
    const TinyModelOptions options = very_small(type);
    test::write_tiny_llama(folder.path(), options);
    for (const NamedTensor& tensor : test::tiny_tensors(options)) {
      edit_tensors(folder.path(), options, [&](std::vector<NamedTensor>& tensors) {
        std::erase_if(tensors, [&](const NamedTensor& other) { return other.name == tensor.name; });
      });
      expect_bad_input([&] { open_checkpoint(folder.path()); },
                       {folder.path().string(), "tensor " + tensor.name + " is missing"});
    }
  }
}

TEST(Checkpoint, NamesTensorsOfExpertsOfTheWrongShapeAndThoseOfNoExpert) {
  const TemporaryFolder folder;
  const TinyModelOptions options = very_small("qwen3_moe");
  test::write_tiny_llama(folder.path(), options);
  edit_config(folder.path(), "moe_intermediate_size", 24);
  expect_bad_input([&] { open_checkpoint(folder.path()); },
                   {"model.layers.0.mlp.experts.0.gate_proj.weight", "[8, 8]", "[24, 8]"});
  edit_config(folder.path(), "moe_intermediate_size", 8);
  edit_config(folder.path(), "num_experts", 6);
  expect_bad_input([&] { open_checkpoint(folder.path()); },
                   {"model.layers.0.mlp.gate.weight", "[5, 8]", "[6, 8]"});
  edit_config(folder.path(), "num_experts", 5);
  edit_config(folder.path(), "mlp_only_layers", json::array({1}));
  expect_bad_input([&] { open_checkpoint(folder.path()); },
                   {"model.layers.1.mlp.gate_proj.weight is missing"});
  edit_config(folder.path(), "mlp_only_layers", json::array());
  edit_tensors(folder.path(), options, [](std::vector<NamedTensor>& tensors) {
    tensors.push_back({"model.layers.0.mlp.shared_expert.up_proj.weight", {8, 8}, std::vector<float>(64)});
  });
  expect_bad_input([&] { open_checkpoint(folder.path()); }, {"mlp.shared_expert.up_proj.weight", "no place"});
}

TEST(Checkpoint, ReadsTheExpertsOfAGptOssOutOfTheirStacks) {
  const TemporaryFolder folder;
  const TinyModelOptions options{
      .model_type = "gpt_oss", .dtype = DType::kF32, .layers = 1, .sliding_window = 16};
  test::write_tiny_llama(folder.path() / "hf", options);
  test::write_tiny_gguf(folder.path() / "model.gguf", options);
  const Checkpoint stacked = open_checkpoint(folder.path() / "hf");
  const Checkpoint gguf = open_checkpoint(folder.path() / "model.gguf");
  const std::string expert = "model.layers.0.mlp.experts.3.";
  for (const int64_t row : {0, 7, 255}) {
    const std::vector<float> gate = row_of(stacked, expert + "gate_up_proj.weight", 2 * row);
    EXPECT_EQ(gate, row_of(gguf, expert + "gate_proj.weight", row));
    EXPECT_EQ(row_of(stacked, expert + "gate_up_proj.weight", 2 * row + 1),
              row_of(gguf, expert + "up_proj.weight", row));
    for (const NamedTensor& tensor : test::tiny_tensors(options)) {
      if (tensor.name != expert + "gate_proj.weight") continue;
      for (size_t i = 0; i < gate.size(); ++i) {
        EXPECT_NEAR(gate[i], tensor.values[static_cast<size_t>(row) * gate.size() + i], 0.04f);
      }
    }
  }
  EXPECT_EQ(row_of(stacked, expert + "down_proj.weight", 127),
            row_of(gguf, expert + "down_proj.weight", 127));
  EXPECT_EQ(row_of(stacked, expert + "down_proj.bias", 0), row_of(gguf, expert + "down_proj.bias", 0));
}

TEST(Checkpoint, NamesWhatAGptOssLacks) {
  const TemporaryFolder folder;
  TinyModelOptions options{.model_type = "gpt_oss", .layers = 1, .sliding_window = 16};
  test::write_tiny_llama(folder.path(), options);
  edit_config(folder.path(), "num_local_experts", 4);
  expect_bad_input([&] { open_checkpoint(folder.path()); },
                   {"model.layers.0.mlp.experts.gate_up_proj_blocks", "[5, 512, 4, 16]", "[4, 512, 4, 16]"});
  edit_config(folder.path(), "num_local_experts", 5);
  edit_config(folder.path(), "hidden_size", 120);
  expect_bad_input([&] { open_checkpoint(folder.path()); }, {"multiples of 32", "120"});
  edit_config(folder.path(), "hidden_size", 128);
  edit_config(folder.path(), "attention_bias", false);
  expect_bad_input([&] { open_checkpoint(folder.path()); }, {".bias has no place"});
  edit_config(folder.path(), "attention_bias", true);
  options.layers = 2;
  edit_config(folder.path(), "num_hidden_layers", 2);
  expect_bad_input([&] { open_checkpoint(folder.path()); },
                   {"model.layers.1.mlp.experts.gate_up_proj_blocks is missing"});
}

TEST(Checkpoint, NamesAStackOfAnotherNumberOfExperts) {
  const TemporaryFolder folder;
  for (const uint32_t count : {4u, 6u}) {
    test::GgufBuilder builder;
    builder.text("general.architecture", "llama")
        .number("llama.embedding_length", 8u)
        .number("llama.feed_forward_length", 16u)
        .number("llama.block_count", 1u)
        .number("llama.attention.head_count", 1u)
        .number("llama.attention.layer_norm_rms_epsilon", 1e-5f)
        .number("llama.context_length", 64u)
        .number("llama.expert_count", count)
        .number("llama.expert_used_count", 2u)
        .tensor("token_embd.weight", {16, 8}, DType::kF32, std::string(16 * 8 * 4, '\0'))
        .tensor("blk.0.ffn_up_exps.weight", {5, 16, 8}, DType::kF32, std::string(5 * 16 * 8 * 4, '\0'));
    folder.write("model.gguf", builder.build());
    expect_bad_input([&] { open_checkpoint(folder.path() / "model.gguf"); },
                     {"model.gguf", "blk.0.ffn_up_exps.weight", "[5, 16, 8]", std::to_string(count)});
  }
}

TEST(Checkpoint, NamesATensorOfTheWrongShape) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path());
  edit_config(folder.path(), "intermediate_size", 512);
  expect_bad_input(
      [&] { open_checkpoint(folder.path()); },
      {folder.path().string(), "model.layers.0.mlp.gate_proj.weight", "[256, 128]", "[512, 128]"});
  test::write_tiny_llama(folder.path());
  edit_config(folder.path(), "vocab_size", 255);
  expect_bad_input([&] { open_checkpoint(folder.path()); },
                   {"model.embed_tokens.weight", "[256, 128]", "[255, 128]"});
}

TEST(Checkpoint, RefusesTensorsItWouldLeaveOut) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path());
  for (const char* name : {"model.layers.1.self_attn.o_proj.bias", "model.layers.0.self_attn.q_norm.weight",
                           "model.layers.2.mlp.up_proj.weight", "model.embed_positions.weight"}) {
    edit_tensors(folder.path(), {}, [&](std::vector<NamedTensor>& tensors) {
      tensors.push_back({name, {1}, {1.0f}});
    });
    expect_bad_input([&] { open_checkpoint(folder.path()); }, {folder.path().string(), name, "llama"});
  }
}

TEST(Checkpoint, ExplainsWhatIsNoModel) {
  const TemporaryFolder folder;
  const std::string name = folder.path().string();
  const auto expect_refused = [](const fs::path& path, std::initializer_list<std::string> parts) {
    expect_bad_input([&] { open_checkpoint(path); }, parts);
  };
  expect_refused(folder.path() / "absent", {name + "/absent does not exist", "Hugging Face", ".gguf"});
  expect_refused("", {"does not exist"});
  expect_refused("/dev/null", {"/dev/null is neither"});
  expect_refused(folder.path(), {name, "no model.safetensors", ".gguf"});
  expect_refused(folder.write("notes.txt", "hello"), {"notes.txt is no model", ".gguf"});
  expect_refused(folder.write("broken.gguf", "hello"), {"broken.gguf is not a GGUF file"});
  expect_refused(folder.path(), {name, "broken.gguf"});
  fs::remove(folder.path() / "broken.gguf");
  folder.write("pytorch_model.bin", "x");
  expect_refused(folder.path(), {name, "pickles", "safetensors"});
  folder.write("model.safetensors", "x");
  expect_refused(folder.path(), {name, "no config.json"});
  folder.write("config.json", "{}");
  expect_refused(folder.path(), {"config.json", "model_type"});
}

TEST(Checkpoint, OpensTheModelsOfTheRepository) {
  const Checkpoint target = open_checkpoint(test::default_model());
  EXPECT_EQ(target.config.hidden_size, 512);
  EXPECT_EQ(target.config.intermediate_size, 1408);
  EXPECT_EQ(target.config.layers, 8);
  EXPECT_EQ(target.config.heads, 8);
  EXPECT_EQ(target.config.kv_heads, 4);
  EXPECT_EQ(target.config.head_dim, 64);
  EXPECT_EQ(target.config.vocab_size, 4096);
  EXPECT_EQ(target.config.context, 1024);
  EXPECT_TRUE(target.config.tied_embeddings);
  EXPECT_EQ(target.config.bos_token, 1);
  EXPECT_EQ(target.config.eos_tokens, std::vector<int32_t>{2});
  EXPECT_EQ(target.tokenizer.kind, TokenizerSource::Kind::kSentencePieceModel);
  EXPECT_EQ(target.tensor("model.layers.7.self_attn.k_proj.weight", {256, 512}).dtype, DType::kBF16);
  const Checkpoint draft = open_checkpoint(test::draft_model());
  EXPECT_EQ(draft.config.hidden_size, 128);
  EXPECT_EQ(draft.config.layers, 4);
}

TEST(PublicCheckpoint, OpensTrainedGgufModels) {
  NEEDS_PUBLIC_DATA();
  const fs::path models = test::public_data() / "models";
  const std::pair<const char*, int32_t> files[] = {{"stories260K/stories260K-f32.gguf", 172},
                                                   {"llama2xs/llama2xs-f32.gguf", 192}};
  for (const auto& [name, intermediate] : files) {
    const Checkpoint checkpoint = open_checkpoint(models / name);
    EXPECT_EQ(checkpoint.config.hidden_size, 64);
    EXPECT_EQ(checkpoint.config.intermediate_size, intermediate);
    EXPECT_EQ(checkpoint.config.layers, 5);
    EXPECT_EQ(checkpoint.config.heads, 8);
    EXPECT_EQ(checkpoint.config.kv_heads, 4);
    EXPECT_EQ(checkpoint.config.head_dim, 8);
    EXPECT_EQ(checkpoint.config.vocab_size, 512);
    EXPECT_TRUE(checkpoint.config.tied_embeddings);
    EXPECT_TRUE(checkpoint.config.rope_interleaved);
    EXPECT_EQ(checkpoint.config.bos_token, 1);
    EXPECT_EQ(checkpoint.config.eos_tokens, std::vector<int32_t>{2});
    EXPECT_EQ(checkpoint.tensors.size(), 47u);
  }
}

TEST(PublicCheckpoint, SaysThatAVocabularyIsNoModel) {
  NEEDS_PUBLIC_DATA();
  const fs::path file = test::public_data() / "tokenizers" / "gguf-vocabs" / "ggml-vocab-llama-spm.gguf";
  expect_bad_input([&] { open_checkpoint(file); },
                   {"ggml-vocab-llama-spm.gguf", "vocabulary but no weights"});
}

}  // namespace
}  // namespace verbatim
