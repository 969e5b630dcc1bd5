#include "support/layer_norm_families.h"

#include <gtest/gtest.h>

#include <set>

#include "checkpoint/bad_input.h"
#include "checkpoint/hf_config.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace layer_norm_families_test {
namespace {

using nlohmann::json;
using test::expect_bad_input;
using test::NamedTensor;
using test::TinyModelOptions;

ModelConfig parse(const json& config) {
  return parse_hf_config(config.dump(), std::nullopt, "model");
}

/// The config.json that files of a family have, with the keys that matter to training alone.
json whole_config(const std::string& family) {
  json config = test::layer_norm_config({.model_type = family, .tied = true});
  if (family == "gpt2") {
    config.update({{"n_ctx", 256},
                   {"scale_attn_weights", true},
                   {"scale_attn_by_inverse_layer_idx", false},
                   {"add_cross_attention", false},
                   {"reorder_and_upcast_attn", false},
                   {"attn_pdrop", 0.1},
                   {"embd_pdrop", 0.1},
                   {"resid_pdrop", 0.1},
                   {"initializer_range", 0.02},
                   {"summary_type", "cls_index"},
                   {"use_cache", true}});
  }
  if (family == "starcoder2") {
    config.update({{"activation_function", "gelu_pytorch_tanh"},
                   {"layer_norm_epsilon", 1e-5},
                   {"mlp_type", "default"},
                   {"norm_type", "layer_norm"},
                   {"scale_attn_weights", true},
                   {"attention_softmax_in_fp32", true},
                   {"residual_dropout", 0.1},
                   {"use_cache", true}});
    config["sliding_window"] = 100;
  }
  if (family == "opt") {
    config.update({{"enable_bias", true},
                   {"layer_norm_elementwise_affine", true},
                   {"_remove_final_layer_norm", false},
                   {"dropout", 0.1},
                   {"layerdrop", 0.0},
                   {"init_std", 0.02},
                   {"use_cache", true}});
  }
  return config;
}

/// Another value of the same type that Transformers would take, for every key.
json other_value(const std::string& key, const json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (key == "model_type") return "gpt_neox";
  if (key == "activation_function" || key == "hidden_act") return value == "relu" ? "gelu_new" : "relu";
  if (value.is_string()) return "other";
  if (value.is_number_float()) return value.get<double>() * 2.0 + 1e-6;
  return key.ends_with("heads") || key == "n_head" || key == "head_dim" ? json(value.get<int>() * 2)
                                                                        : json(value.get<int>() + 4);
}

class LayerNormConfig : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(, LayerNormConfig, testing::Values("gpt2", "starcoder2", "opt"),
                         [](const auto& info) { return std::string(info.param); });

// What is honoured here changes the config, which the tests of the decoder and of tensors follow up.
TEST_P(LayerNormConfig, HonoursOrRefusesEveryKeyThatChangesWhatIsComputed) {
  const std::set<std::string> harmless = {
      "reorder_and_upcast_attn", "attn_pdrop",   "embd_pdrop", "resid_pdrop",
      "initializer_range",       "summary_type", "use_cache",  "attention_softmax_in_fp32",
      "residual_dropout",        "dropout",      "layerdrop",  "init_std"};
  const json whole = whole_config(GetParam());
  const ModelConfig config = parse(whole);
  for (const auto& [key, value] : whole.items()) {
    json changed = whole;
    changed[key] = other_value(key, value);
    ASSERT_NE(changed[key], value) << key;
    try {
      EXPECT_EQ(parse(changed) == config, harmless.contains(key)) << key;
    } catch (const Error& error) {
      EXPECT_FALSE(harmless.contains(key)) << error.what();
      const bool named =
          std::string(error.what()).find(key == "n_embd" ? "head size" : key) != std::string::npos;
      EXPECT_TRUE(named || key == "hidden_size" || key.ends_with("heads") || key == "n_head")
          << key << ": " << error.what();
    }
  }
}

TEST(LayerNormConfigs, ReadAGpt2) {
  json config = test::layer_norm_config({.model_type = "gpt2", .intermediate_size = 300, .layers = 3});
  config.erase("tie_word_embeddings");
  const ModelConfig parsed = parse(config);
  EXPECT_EQ(parsed.architecture, Architecture::kGpt2);
  EXPECT_EQ(parsed.hidden_size, 128);
  EXPECT_EQ(parsed.intermediate_size, 300);
  EXPECT_EQ(parsed.layers, 3);
  EXPECT_EQ(parsed.heads, 4);
  EXPECT_EQ(parsed.kv_heads, 4);
  EXPECT_EQ(parsed.head_dim, 32);
  EXPECT_EQ(parsed.context, 256);
  EXPECT_EQ(parsed.activation, Activation::kGeluTanh);
  EXPECT_EQ(parsed.unrotated_layers, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_TRUE(parsed.layer_norm && parsed.plain_mlp && parsed.learned_positions && parsed.fused_qkv);
  EXPECT_TRUE(parsed.qkv_bias && parsed.output_bias && parsed.mlp_bias && parsed.tied_embeddings);
  config.erase("n_inner");
  EXPECT_EQ(parse(config).intermediate_size, 512);
  config["scale_attn_weights"] = false;
  EXPECT_EQ(parse(config).scales.attention, 1.0f);
  config["activation_function"] = "gelu";  // the exact one
  expect_bad_input([&] { parse(config); }, {"model/config.json", "activation_function gelu "});
  config["activation_function"] = "gelu_new";
  config["hidden_size"] = 64;
  expect_bad_input([&] { parse(config); }, {"n_embd is 128", "hidden_size is 64"});
  config.erase("hidden_size");
  config["quantization_config"] = {{"quant_method", "gptq"}};
  expect_bad_input([&] { parse(config); }, {"quantization_config", "gpt2"});
}

TEST(LayerNormConfigs, ReadAStarcoder2) {
  json config = test::layer_norm_config({.model_type = "starcoder2"});
  for (const char* key : {"tie_word_embeddings", "head_dim", "num_key_value_heads", "sliding_window"}) {
    config.erase(key);
  }
  const ModelConfig parsed = parse(config);
  EXPECT_EQ(parsed.kv_heads, 2);
  EXPECT_EQ(parsed.head_dim, 32);
  EXPECT_EQ(parsed.sliding_window, 0);
  EXPECT_TRUE(parsed.layer_norm && parsed.plain_mlp && parsed.mlp_bias && parsed.tied_embeddings);
  EXPECT_FALSE(parsed.learned_positions || parsed.fused_qkv);
  EXPECT_TRUE(parsed.unrotated_layers.empty());
  config["use_bias"] = false;
  EXPECT_FALSE(parse(config).qkv_bias || parse(config).output_bias || parse(config).mlp_bias);
  config["norm_type"] = "rms_norm";
  expect_bad_input([&] { parse(config); }, {"norm_type rms_norm"});
}

TEST(LayerNormConfigs, RefuseAnOptOfAnotherShape) {
  const json config = test::layer_norm_config({.model_type = "opt"});
  EXPECT_EQ(parse(config).activation, Activation::kRelu);
  for (const auto& [key, value] :
       {std::pair("do_layer_norm_before", json(false)), std::pair("word_embed_proj_dim", json(64)),
        std::pair("layer_norm_elementwise_affine", json(false))}) {
    json changed = config;
    changed[key] = value;
    expect_bad_input([&] { parse(changed); }, {"model/config.json", key});
  }
}

TEST_P(LayerNormConfig, NamesTensorsThatAreMisshapenOrTooMany) {
  const test::TemporaryFolder folder;
  const TinyModelOptions options{.model_type = GetParam(),
                                 .hidden_size = 8,
                                 .intermediate_size = 12,
                                 .head_dim = 2,
                                 .vocab_size = 16,
                                 .context = 20};
  test::write_tiny_llama(folder.path(), options);
  const std::vector<NamedTensor> tensors = test::tiny_tensors(options);
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<NamedTensor> changed = tensors;
    changed[i].shape.front() += 1;
    changed[i].values.resize(changed[i].values.size() +
                             (changed[i].shape.size() > 1 ? changed[i].shape[1] : 1));
    folder.write("model.safetensors", test::safetensors_file(changed, options.dtype));
    expect_bad_input([&] { open_checkpoint(folder.path()); }, {changed[i].name + " has the shape"});
  }
  for (const char* name : {"h.0.attn.rotary", "model.layers.0.self_attn.q_norm.weight", "lm_head.bias"}) {
    std::vector<NamedTensor> more = tensors;
    more.push_back({name, {8}, std::vector<float>(8)});
    folder.write("model.safetensors", test::safetensors_file(more, options.dtype));
    expect_bad_input([&] { open_checkpoint(folder.path()); }, {name, "no place"});
  }
}

TEST(LayerNormConfigs, TellMatricesOfAGpt2TheWayTheyAreStored) {
  const test::TemporaryFolder folder;
  const TinyModelOptions options{.model_type = "gpt2", .dtype = DType::kF32};
  test::write_tiny_llama(folder.path(), options);
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  for (const NamedTensor& stored : test::tiny_tensors(options)) {
    const NamedTensor turned = test::with_rows_of_outputs(stored);
    const TensorView& tensor = checkpoint.tensors.at(stored.name);
    ASSERT_EQ(tensor.shape, turned.shape) << stored.name;
    std::vector<float> row(static_cast<size_t>(tensor.columns()));
    for (int64_t r = 0; r < tensor.rows(); ++r) {
      tensor.read_row(r, row);
      ASSERT_TRUE(std::equal(row.begin(), row.end(), turned.values.begin() + r * tensor.columns()))
          << stored.name << " row " << r;
    }
  }
}

TEST(LayerNormConfigs, AreReadFromGguf) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "model.gguf";
  for (const char* family : {"gpt2", "starcoder2"}) {
    const TinyModelOptions options{.model_type = family, .dtype = DType::kF32, .tied = true};
    test::write_tiny_gguf(path, options);
    const Checkpoint gguf = open_checkpoint(path);
    test::write_tiny_llama(folder.path() / family, options);
    ModelConfig expected = open_checkpoint(folder.path() / family).config;
    EXPECT_EQ(gguf.config, expected) << family;
    for (const NamedTensor& stored : test::tiny_tensors(options)) {
      const NamedTensor tensor = test::with_rows_of_outputs(stored);
      ASSERT_EQ(gguf.tensors.at(tensor.name).shape, tensor.shape) << tensor.name;
    }
  }
}

TEST(LayerNormConfigs, OfAGgufRefuseRotationAndWindowsOfAGpt2) {
  const auto refused = [](const std::string& key) {
    test::GgufBuilder builder;
    builder.text("general.architecture", "gpt2")
        .number("gpt2.embedding_length", 8u)
        .number("gpt2.feed_forward_length", 16u)
        .number("gpt2.block_count", 1u)
        .number("gpt2.attention.head_count", 1u)
        .number("gpt2.attention.layer_norm_epsilon", 1e-5f)
        .number("gpt2.context_length", 64u)
        .number(key, 32u)
        .tensor("token_embd.weight", {16, 8}, DType::kF32, std::string(16 * 8 * 4, '\0'));
    const test::TemporaryFolder folder;
    folder.write("model.gguf", builder.build());
    expect_bad_input([&] { open_checkpoint(folder.path() / "model.gguf"); }, {"model.gguf", key});
  };
  refused("gpt2.rope.freq_base");
  refused("gpt2.rope.dimension_count");
  refused("gpt2.attention.sliding_window");
  refused("gpt2.attention.layer_norm_rms_epsilon");
}

}  // namespace
}  // namespace layer_norm_families_test
}  // namespace verbatim
