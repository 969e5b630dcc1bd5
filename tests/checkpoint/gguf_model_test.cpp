#include "checkpoint/gguf_model.h"

#include <gtest/gtest.h>

#include <functional>

#include "checkpoint/bad_input.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::expect_bad_input;
using test::GgufBuilder;

/// Metadata and tensors of a tiny model as far as the config needs them; single entries can be left out.
class TinyGguf {
 public:
  std::map<std::string, std::function<void(GgufBuilder&, const std::string&)>> metadata;

  TinyGguf() {
    text("general.architecture", "llama");
    number("llama.embedding_length", 64u);
    number("llama.feed_forward_length", 128u);
    number("llama.block_count", 1u);
    number("llama.attention.head_count", 4u);
    number("llama.attention.head_count_kv", 2u);
    number("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    number("llama.context_length", 512u);
    number("llama.rope.dimension_count", 16u);
  }

  template <typename T>
  void number(const std::string& key, T value) {
    metadata[key] = [value](GgufBuilder& builder, const std::string& name) { builder.number(name, value); };
  }
  void text(const std::string& key, const std::string& value) {
    metadata[key] = [value](GgufBuilder& builder, const std::string& name) { builder.text(name, value); };
  }
  void tensor(const std::string& name, const std::vector<int64_t>& shape, float value = 0.0f) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    const std::string bytes =
        test::encode(DType::kF32, std::vector<float>(static_cast<size_t>(count), value));
    tensors_.push_back([=](GgufBuilder& builder) { builder.tensor(name, shape, DType::kF32, bytes); });
  }

  Checkpoint open(bool embedding = true) const {
    GgufBuilder builder;
    for (const auto& entry : metadata) entry.second(builder, entry.first);
    if (embedding) {
      builder.tensor("token_embd.weight", {100, 64}, DType::kF32, std::string(100 * 64 * 4, '\0'));
    }
    for (const auto& add : tensors_) add(builder);
    const std::string bytes = builder.build();
    return gguf_checkpoint(parse_gguf(std::as_bytes(std::span(bytes)), "some.gguf"), "some.gguf");
  }

  void expect_refused(std::initializer_list<std::string> parts) const {
    expect_bad_input([&] { open(); }, parts);
  }

 private:
  std::vector<std::function<void(GgufBuilder&)>> tensors_;
};

TEST(GgufModel, ReadsTheConfig) {
  TinyGguf file;
  file.number("tokenizer.ggml.bos_token_id", 1u);
  file.number("tokenizer.ggml.eos_token_id", 2u);
  file.number("tokenizer.ggml.eot_token_id", 3u);
  file.number("tokenizer.ggml.eom_token_id", 4u);
  file.number("llama.attention.sliding_window", 128u);
  file.number("llama.rope.freq_base", 1e6f);
  const Checkpoint checkpoint = file.open();
  const ModelConfig& config = checkpoint.config;
  EXPECT_EQ(checkpoint.format, "gguf");
  EXPECT_EQ(checkpoint.tokenizer.kind, TokenizerSource::Kind::kGguf);
  EXPECT_EQ(config.architecture, Architecture::kLlama);
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.intermediate_size, 128);
  EXPECT_EQ(config.layers, 1);
  EXPECT_EQ(config.heads, 4);
  EXPECT_EQ(config.kv_heads, 2);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.vocab_size, 100);
  EXPECT_EQ(config.context, 512);
  EXPECT_EQ(config.rms_norm_epsilon, 1e-5f);
  EXPECT_EQ(config.rope_theta, 1e6f);
  EXPECT_TRUE(config.rope_interleaved);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_FALSE(config.qkv_bias);
  EXPECT_EQ(config.sliding_window, 128);
  EXPECT_EQ(config.bos_token, 1);
  EXPECT_EQ(config.eos_tokens, (std::vector<int32_t>{2, 3, 4}));
}

TEST(GgufModel, NamesTensorsAsHuggingFaceDoes) {
  TinyGguf file;
  const std::pair<const char*, const char*> names[] = {
      {"output_norm.weight", "model.norm.weight"},
      {"output.weight", "lm_head.weight"},
      {"blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight"},
      {"blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj.weight"},
      {"blk.0.attn_k.bias", "model.layers.0.self_attn.k_proj.bias"},
      {"blk.12.attn_v.weight", "model.layers.12.self_attn.v_proj.weight"},
      {"blk.0.attn_output.weight", "model.layers.0.self_attn.o_proj.weight"},
      {"blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight"},
      {"blk.0.ffn_gate.weight", "model.layers.0.mlp.gate_proj.weight"},
      {"blk.0.ffn_up.weight", "model.layers.0.mlp.up_proj.weight"},
      {"blk.0.ffn_down.weight", "model.layers.0.mlp.down_proj.weight"},
      {"blk.0.attn_q_norm.weight", "model.layers.0.self_attn.q_norm.weight"},
      {"blk.0.attn_sinks.weight", "model.layers.0.attn_sinks.weight"},
      {"other", "other"},
  };
  for (const auto& pair : names) file.tensor(pair.first, {2});
  const Checkpoint checkpoint = file.open();
  for (const auto& pair : names) EXPECT_TRUE(checkpoint.has(pair.second)) << pair.first;
  EXPECT_TRUE(checkpoint.has("model.embed_tokens.weight"));
  EXPECT_FALSE(checkpoint.config.tied_embeddings);
}

TEST(GgufModel, ReadsRopeScaling) {
  TinyGguf file;
  file.text("llama.rope.scaling.type", "none");
  EXPECT_EQ(file.open().config.rope_scaling.kind, RopeScaling::Kind::kNone);
  file.text("llama.rope.scaling.type", "linear");
  file.number("llama.rope.scaling.factor", 4.0f);
  EXPECT_EQ(file.open().config.rope_scaling.kind, RopeScaling::Kind::kLinear);
  EXPECT_EQ(file.open().config.rope_scaling.factor, 4.0f);
  EXPECT_EQ(file.open().config.context, 2048);
  file.text("llama.rope.scaling.type", "longrope");
  file.expect_refused({"some.gguf", "longrope", "none, linear and yarn"});
}

TEST(GgufModel, ReadsYarnScaling) {
  TinyGguf file;
  file.text("llama.rope.scaling.type", "yarn");
  file.number("llama.rope.scaling.factor", 4.0f);
  RopeScaling scaling = file.open().config.rope_scaling;
  EXPECT_EQ(scaling.kind, RopeScaling::Kind::kYarn);
  EXPECT_EQ(scaling.factor, 4.0f);
  EXPECT_EQ(scaling.original_context, 512);
  EXPECT_EQ(scaling.yarn, (YarnScaling{1.138629436111989f, 32.0f, 1.0f, true}));
  EXPECT_EQ(file.open().config.context, 2048);
  file.number("llama.rope.scaling.original_context_length", 128u);
  file.number("llama.rope.scaling.attn_factor", 2.0f);
  file.number("llama.rope.scaling.yarn_beta_fast", 24.0f);
  file.number("llama.rope.scaling.yarn_beta_slow", 2.0f);
  scaling = file.open().config.rope_scaling;
  EXPECT_EQ(scaling.original_context, 128);
  EXPECT_EQ(scaling.yarn, (YarnScaling{2.0f * 1.138629436111989f, 24.0f, 2.0f, true}));
  EXPECT_EQ(file.open().config.context, 512);
  TinyGguf other = file;
  other.number("llama.rope.scaling.yarn_log_multiplier", 0.1f);
  other.expect_refused({"some.gguf", "yarn_log_multiplier"});
  file.number("llama.rope.scaling.yarn_ext_factor", 0.5f);
  file.expect_refused({"some.gguf", "yarn_ext_factor"});
}

TEST(GgufModel, ReadsRopeFactors) {
  TinyGguf file;
  file.tensor("rope_freqs.weight", {8}, 2.0f);
  const Checkpoint checkpoint = file.open();
  EXPECT_EQ(checkpoint.config.rope_frequency_factors, std::vector<float>(8, 2.0f));
  EXPECT_FALSE(checkpoint.has("rope_freqs.weight"));
  TinyGguf longer;
  longer.tensor("rope_freqs.weight", {16}, 2.0f);
  longer.expect_refused({"some.gguf", "rope_freqs.weight", "[16]", "[8]"});
  TinyGguf zero;
  zero.tensor("rope_freqs.weight", {8}, 0.0f);
  zero.expect_refused({"some.gguf", "frequency factor"});
}

TEST(GgufModel, RefusesWhatTheEngineLacks) {
  TinyGguf file;
  file.text("general.architecture", "falcon");
  file.expect_refused({"some.gguf", "falcon", "llama", "qwen2"});
  file = TinyGguf();
  file.number("llama.rope.dimension_count", 8u);
  file.expect_refused({"some.gguf", "8 of the 16"});
  file = TinyGguf();
  file.number("llama.attention.key_length", 16u);
  file.number("llama.attention.value_length", 32u);
  file.expect_refused({"some.gguf", "different lengths"});
  file = TinyGguf();
  file.number("llama.attention.value_length", 32u);
  file.expect_refused({"some.gguf", "different lengths"});
  file = TinyGguf();
  file.number("llama.vocab_size", 100u);  // is known from the embedding
  file.open();
  file.number("llama.attn_logit_softcapping", 50.0f);
  file.expect_refused({"some.gguf", "llama.attn_logit_softcapping"});
}

TEST(GgufModel, ScalesPositionsByAFactorWithoutAType) {
  TinyGguf file;
  file.number("llama.rope.scaling.factor", 4.0f);
  EXPECT_EQ(file.open().config.rope_scaling.kind, RopeScaling::Kind::kLinear);
  file.text("llama.rope.scaling.type", "none");
  EXPECT_EQ(file.open().config.rope_scaling.kind, RopeScaling::Kind::kNone);
}

/// The file of another architecture: keys under its name.
TinyGguf as_architecture(const std::string& name) {
  TinyGguf file;
  TinyGguf result;
  result.metadata.clear();
  for (const auto& [key, write] : file.metadata) {
    if (key == "general.architecture") continue;
    result.metadata[name + key.substr(key.find('.'))] = write;
  }
  result.text("general.architecture", name);
  return result;
}

TEST(GgufModel, ReadsTheFactorsOfAGranite) {
  TinyGguf file = as_architecture("granite");
  EXPECT_EQ(file.open().config.architecture, Architecture::kGranite);
  EXPECT_EQ(file.open().config.scales, Scales());
  file.number("granite.embedding_scale", 12.0f);
  file.number("granite.residual_scale", 0.25f);
  file.number("granite.attention.scale", 0.5f);
  file.number("granite.logit_scale", 8.0f);
  EXPECT_EQ(file.open().config.scales, (Scales{12.0f, 0.25f, 0.5f, 0.125f}));
  EXPECT_TRUE(file.open().config.rope_interleaved);
  EXPECT_TRUE(file.open().config.unrotated_layers.empty());
  file.metadata["granite.rope.scaling.finetuned"] = [](GgufBuilder& builder, const std::string& name) {
    builder.boolean(name, false);
  };
  EXPECT_EQ(file.open().config.unrotated_layers, std::vector<int32_t>{0});
  TinyGguf other;
  other.number("llama.logit_scale", 8.0f);
  other.expect_refused({"some.gguf", "llama.logit_scale"});
}

TEST(GgufModel, KnowsWhichLayersOfASmolLm3DoNotRotate) {
  TinyGguf file = as_architecture("smollm3");
  file.number("smollm3.block_count", 9u);
  EXPECT_EQ(file.open().config.unrotated_layers, (std::vector<int32_t>{3, 7}));
  EXPECT_TRUE(file.open().config.rope_interleaved);
  file.number("smollm3.attention.sliding_window", 64u);
  file.expect_refused({"some.gguf", "smollm3.attention.sliding_window"});
}

TEST(GgufModel, NamesTheNormsOfAnOlmo2AsHuggingFaceDoes) {
  TinyGguf file = as_architecture("olmo2");
  const std::pair<const char*, const char*> names[] = {
      {"blk.0.post_attention_norm.weight", "model.layers.0.post_attention_layernorm.weight"},
      {"blk.0.post_ffw_norm.weight", "model.layers.0.post_feedforward_layernorm.weight"},
      {"blk.0.ffn_norm.weight", "model.layers.0.ffn_norm.weight"},  // has no place, and is refused later
  };
  for (const auto& pair : names) file.tensor(pair.first, {2});
  const Checkpoint checkpoint = file.open();
  EXPECT_EQ(checkpoint.config.block_norms, BlockNorms::kAfter);
  EXPECT_EQ(checkpoint.config.head_norm, HeadNorm::kWhole);
  EXPECT_FALSE(checkpoint.config.rope_interleaved);
  for (const auto& pair : names) EXPECT_TRUE(checkpoint.has(pair.second)) << pair.first;
  file.number("olmo2.attention.sliding_window", 64u);
  file.expect_refused({"some.gguf", "olmo2.attention.sliding_window"});
}

TEST(GgufModel, ReadsAPhi3) {
  TinyGguf file = as_architecture("phi3");
  file.number("phi3.rope.dimension_count", 12u);
  file.number("phi3.attention.sliding_window", 64u);
  file.number("phi3.rope.scaling.original_context_length", 128u);
  EXPECT_EQ(file.open().config.rotary_dim, 12);
  EXPECT_EQ(file.open().config.sliding_window, 64);
  EXPECT_TRUE(file.open().config.fused_qkv);
  EXPECT_TRUE(file.open().config.fused_gate_up);
  EXPECT_EQ(file.open().config.rope_scaling.kind, RopeScaling::Kind::kNone);
  file.tensor("rope_factors_short.weight", {6}, 2.0f);
  file.expect_refused({"some.gguf", "long factors"});
  file.tensor("rope_factors_long.weight", {6}, 3.0f);
  file.tensor("blk.0.attn_qkv.weight", {2});
  file.tensor("blk.0.ffn_up.weight", {2});
  file.number("phi3.rope.scaling.attn_factor", 1.25f);
  const Checkpoint checkpoint = file.open();
  const RopeScaling& scaling = checkpoint.config.rope_scaling;
  EXPECT_EQ(scaling.kind, RopeScaling::Kind::kLongRope);
  EXPECT_EQ(scaling.original_context, 128);
  EXPECT_EQ(scaling.long_rope, (LongRope{std::vector<float>(6, 2.0f), std::vector<float>(6, 3.0f), 1.25f}));
  EXPECT_TRUE(checkpoint.has("model.layers.0.self_attn.qkv_proj.weight"));
  EXPECT_TRUE(checkpoint.has("model.layers.0.mlp.gate_up_proj.weight"));
  EXPECT_FALSE(checkpoint.has("rope_factors_long.weight"));
}

TEST(GgufModel, ReadsAGlm4) {
  TinyGguf file = as_architecture("glm4");
  file.number("glm4.rope.dimension_count", 10u);
  EXPECT_FALSE(file.open().config.qkv_bias);
  const std::pair<const char*, const char*> names[] = {
      {"blk.0.attn_q.bias", "model.layers.0.self_attn.q_proj.bias"},
      {"blk.0.ffn_up.weight", "model.layers.0.mlp.gate_up_proj.weight"},
      {"blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight"},
      {"blk.0.post_attention_norm.weight", "model.layers.0.post_self_attn_layernorm.weight"},
      {"blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight"},
      {"blk.0.post_ffw_norm.weight", "model.layers.0.post_mlp_layernorm.weight"},
  };
  for (const auto& pair : names) file.tensor(pair.first, {2});
  const Checkpoint checkpoint = file.open();
  const ModelConfig& config = checkpoint.config;
  EXPECT_EQ(config.architecture, Architecture::kGlm4);
  EXPECT_EQ(config.rotary_dim, 10);
  EXPECT_TRUE(config.rope_interleaved);
  EXPECT_TRUE(config.qkv_bias);
  EXPECT_FALSE(config.fused_qkv);
  EXPECT_TRUE(config.fused_gate_up);
  EXPECT_EQ(config.block_norms, BlockNorms::kBoth);
  for (const auto& pair : names) EXPECT_TRUE(checkpoint.has(pair.second)) << pair.first;
  for (const char* key : {"glm4.attention.sliding_window", "glm4.nextn_predict_layers"}) {
    TinyGguf other = as_architecture("glm4");
    other.number(key, 1u);
    other.expect_refused({"some.gguf", key});
  }
}

TEST(GgufModel, ReadsAMixtralWhichIsALlama) {
  TinyGguf file;
  file.number("llama.expert_count", 3u);
  file.expect_refused({"some.gguf", "llama.expert_used_count"});
  file.number("llama.expert_used_count", 2u);
  file.tensor("blk.0.ffn_gate_inp.weight", {3, 64});
  file.tensor("blk.0.ffn_gate_exps.weight", {3, 128, 64});
  file.tensor("blk.0.ffn_up.2.weight", {128, 64});
  file.tensor("blk.0.ffn_down.10.weight", {64, 128});
  const Checkpoint checkpoint = file.open();
  const ModelConfig& config = checkpoint.config;
  EXPECT_EQ(config.architecture, Architecture::kMixtral);
  EXPECT_TRUE(config.rope_interleaved);
  EXPECT_EQ(config.experts, (Experts{.count = 3, .used = 2, .intermediate_size = 128, .normalized = true}));
  const std::string part = "model.layers.0.block_sparse_moe.";
  for (const char* name :
       {"gate", "experts.0.w1", "experts.1.w1", "experts.2.w1", "experts.2.w3", "experts.10.w2"}) {
    EXPECT_TRUE(checkpoint.has(part + name + ".weight")) << name;
  }
  EXPECT_EQ(checkpoint.tensors.size(), 7u);
  EXPECT_EQ(checkpoint.tensor(part + "experts.1.w1.weight", {128, 64}).data.size(), 4u * 128 * 64);

  file.tensor("blk.0.ffn_gate.1.weight", {128, 64});
  file.expect_refused({"some.gguf", "two names"});
}

TEST(GgufModel, ReadsAQwen3Moe) {
  TinyGguf file = as_architecture("qwen3moe");
  file.expect_refused({"some.gguf", "qwen3moe.expert_used_count"});
  file.number("qwen3moe.expert_count", 6u);
  file.number("qwen3moe.expert_used_count", 4u);
  file.expect_refused({"some.gguf", "qwen3moe.expert_feed_forward_length"});
  file.number("qwen3moe.expert_feed_forward_length", 48u);
  const ModelConfig config = file.open().config;
  EXPECT_EQ(config.architecture, Architecture::kQwen3Moe);
  EXPECT_EQ(config.head_norm, HeadNorm::kPerHead);
  EXPECT_FALSE(config.rope_interleaved);
  EXPECT_EQ(config.experts, (Experts{.count = 6, .used = 4, .intermediate_size = 48, .normalized = true}));
}

TEST(GgufModel, ReadsAGptOss) {
  TinyGguf file = as_architecture("gpt-oss");
  file.number("gpt-oss.block_count", 4u);
  file.number("gpt-oss.expert_used_count", 2u);
  file.number("gpt-oss.expert_feed_forward_length", 32u);
  file.number("gpt-oss.expert_count", 3u);
  file.expect_refused({"some.gguf", "gpt-oss.attention.sliding_window"});
  file.number("gpt-oss.attention.sliding_window", 64u);
  file.text("gpt-oss.rope.scaling.type", "yarn");
  file.number("gpt-oss.rope.scaling.factor", 32.0f);
  file.number("gpt-oss.rope.scaling.original_context_length", 16u);
  file.tensor("blk.0.attn_sinks.weight", {4});
  file.tensor("blk.0.attn_output.bias", {64});
  file.tensor("blk.0.post_attention_norm.weight", {64});
  file.tensor("blk.0.ffn_gate_inp.bias", {3});
  file.tensor("blk.0.ffn_gate_exps.bias", {3, 32});
  file.tensor("blk.0.ffn_down_exps.weight", {3, 64, 32});
  const Checkpoint checkpoint = file.open();
  const ModelConfig& config = checkpoint.config;
  EXPECT_EQ(config.architecture, Architecture::kGptOss);
  const Experts experts{.count = 3, .used = 2, .intermediate_size = 32, .normalized = true, .biases = true};
  EXPECT_EQ(config.experts, experts);
  EXPECT_EQ(config.windowless_layers, (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(config.activation, Activation::kClampedSilu);
  EXPECT_FALSE(config.rope_scaling.yarn.truncate);
  EXPECT_TRUE(config.qkv_bias && config.output_bias && config.head_sinks);
  for (const char* name :
       {"self_attn.sinks", "self_attn.o_proj.bias", "post_attention_layernorm.weight", "mlp.router.bias",
        "mlp.experts.2.gate_proj.bias", "mlp.experts.1.down_proj.weight"}) {
    EXPECT_TRUE(checkpoint.has(std::string("model.layers.0.") + name)) << name;
  }
  file.tensor("blk.1.ffn_up_exps.bias", {4, 32});
  file.expect_refused({"some.gguf", "blk.1.ffn_up_exps.bias", "[4, 32]", "biases of 3 experts"});
}

TEST(GgufModel, RefusesExpertsThatItDoesNotKnow) {
  const auto mixtral = [](const std::string& key, uint32_t value) {
    TinyGguf file;
    file.number("llama.expert_count", 8u);
    file.number("llama.expert_used_count", 2u);
    file.number(key, value);
    return file;
  };
  mixtral("llama.expert_used_count", 8u).open();
  mixtral("llama.expert_used_count", 9u).expect_refused({"some.gguf", "experts", "9"});
  mixtral("llama.expert_used_count", 0u).expect_refused({"some.gguf", "experts", "0"});
  mixtral("llama.expert_count", 1'000'000'000u).expect_refused({"some.gguf", "number of experts"});
  mixtral("llama.expert_feed_forward_length", 0u).expect_refused({"some.gguf", "size of experts"});
  for (const char* key : {"llama.expert_shared_count", "llama.expert_gating_func",
                          "llama.expert_weights_scale", "llama.leading_dense_block_count"}) {
    mixtral(key, 1u).expect_refused({"some.gguf", key});
  }
  TinyGguf file = as_architecture("glm4");
  file.number("glm4.expert_count", 8u);
  file.expect_refused({"some.gguf", "experts in a glm4 model"});
}

TEST(GgufModel, ReadsAGemma2) {
  TinyGguf file = as_architecture("gemma2");
  file.number("gemma2.block_count", 4u);
  file.number("gemma2.attention.sliding_window", 64u);
  file.number("gemma2.attn_logit_softcapping", 40.0f);
  file.tensor("blk.0.ffn_norm.weight", {2});
  file.tensor("blk.0.post_ffw_norm.weight", {2});
  const Checkpoint checkpoint = file.open();
  const ModelConfig& config = checkpoint.config;
  EXPECT_EQ(config.block_norms, BlockNorms::kBoth);
  EXPECT_FALSE(config.norms_less_one);
  EXPECT_EQ(config.soft_caps, (SoftCaps{40.0f, 30.0f}));
  EXPECT_EQ(config.scales, (Scales{8.0f, 1.0f, 0.25f, 1.0f}));
  EXPECT_EQ(config.windowless_layers, (std::vector<int32_t>{1, 3}));
  EXPECT_TRUE(checkpoint.has("model.layers.0.pre_feedforward_layernorm.weight"));
  EXPECT_TRUE(checkpoint.has("model.layers.0.post_feedforward_layernorm.weight"));
}

TEST(GgufModel, ReadsAGemma3) {
  TinyGguf file = as_architecture("gemma3");
  file.number("gemma3.block_count", 7u);
  file.expect_refused({"some.gguf", "gemma3.attention.sliding_window is missing"});
  file.number("gemma3.attention.sliding_window", 64u);
  file.number("gemma3.rope.freq_base", 1e6f);
  file.text("gemma3.rope.scaling.type", "linear");
  file.number("gemma3.rope.scaling.factor", 8.0f);
  const ModelConfig config = file.open().config;
  EXPECT_EQ(config.architecture, Architecture::kGemma3);
  EXPECT_EQ(config.head_norm, HeadNorm::kPerHead);
  EXPECT_EQ(config.soft_caps, SoftCaps());
  EXPECT_EQ(config.windowless_layers, std::vector<int32_t>{5});
  EXPECT_EQ(config.window_rope_theta, 1e4f);
  EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::kLinear);
  EXPECT_EQ(config.context, 512);
  file.number("gemma3.attn_logit_softcapping", 40.0f);
  file.expect_refused({"some.gguf", "gemma3.attn_logit_softcapping"});
}

TEST(GgufModel, RefusesMissingAndMistypedMetadata) {
  for (const auto& entry : TinyGguf().metadata) {
    const std::string& key = entry.first;
    TinyGguf file;
    file.metadata.erase(key);
    if (!key.ends_with("head_count_kv") && !key.ends_with("dimension_count")) {
      file.expect_refused({"some.gguf", key.substr(key.find('.') + 1), "missing"});
    }
    if (key == "general.architecture") {
      file.number(key, 1u);
    } else {
      file.text(key, "x");
    }
    expect_bad_input([&] { file.open(); }, {key});
    if (key.ends_with("_count") || key.ends_with("_length")) {
      file.number(key, 0xffffffffu);
      file.expect_refused({"some.gguf", key, "too large"});
    }
  }
  expect_bad_input([] { TinyGguf().open(false); }, {"some.gguf", "no weights"});
  TinyGguf file;
  file.tensor("other", {1});
  expect_bad_input([&] { file.open(false); }, {"some.gguf", "token_embd.weight is missing"});
}

TEST(GgufModel, RefusesANameTwice) {
  TinyGguf file;
  file.tensor("output_norm.weight", {64});
  file.tensor("model.norm.weight", {64});
  file.expect_refused({"some.gguf", "output_norm.weight", "two names"});
}

}  // namespace
}  // namespace verbatim
