#include "checkpoint/hf_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/bad_input.h"
#include "support/test_data.h"

namespace verbatim {
namespace hf_config_test {
namespace {

using nlohmann::json;
using test::expect_bad_input;

json base_config(const std::string& model_type = "llama") {
  return {{"model_type", model_type}, {"hidden_size", 64},
          {"intermediate_size", 128}, {"num_hidden_layers", 4},
          {"num_attention_heads", 4}, {"num_key_value_heads", 2},
          {"vocab_size", 100},        {"rms_norm_eps", 1e-5},
          {"rope_theta", 500000.0},   {"max_position_embeddings", 512},
          {"bos_token_id", 1},        {"eos_token_id", 2},
          {"sliding_window", nullptr}};
}

ModelConfig parse(const json& config, std::optional<std::string> generation = std::nullopt) {
  std::optional<std::string_view> view;
  if (generation) view = *generation;
  return parse_hf_config(config.dump(), view, "model");
}

/// The base with one field replaced, or removed if the value is discarded.
json with(const std::string& key, const json& value, const std::string& model_type = "llama") {
  json config = base_config(model_type);
  config[key] = value;
  return config;
}

json without(const std::string& key) {
  json config = base_config();
  config.erase(key);
  return config;
}

void expect_refused(const json& config, std::initializer_list<std::string> parts) {
  expect_bad_input([&] { parse(config); }, {"model/config.json"});
  expect_bad_input([&] { parse(config); }, parts);
}

TEST(HfConfig, KnowsWhereTheWeightsComeFrom) {
  EXPECT_EQ(parse(base_config()).origin, Origin::kTrained);
  EXPECT_EQ(parse(with("verbatim_random", false)).origin, Origin::kTrained);
  json config = with("verbatim_inflated", {{"from", "small"}, {"width", 4}, {"depth", 23}});
  EXPECT_EQ(parse(config).origin, Origin::kInflated);
  config["verbatim_random"] = true;
  EXPECT_EQ(parse(config).origin, Origin::kRandom);
  config["verbatim_random"] = "much";
  expect_refused(config, {"verbatim_random"});
}

TEST(HfConfig, ReadsALlama) {
  const ModelConfig config = parse(base_config());
  EXPECT_EQ(config.architecture, Architecture::kLlama);
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.intermediate_size, 128);
  EXPECT_EQ(config.layers, 4);
  EXPECT_EQ(config.heads, 4);
  EXPECT_EQ(config.kv_heads, 2);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.vocab_size, 100);
  EXPECT_EQ(config.context, 512);
  EXPECT_EQ(config.rms_norm_epsilon, 1e-5f);
  EXPECT_EQ(config.rope_theta, 500000.0f);
  EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::kNone);
  EXPECT_FALSE(config.rope_interleaved);
  EXPECT_EQ(config.sliding_window, 0);
  EXPECT_FALSE(config.tied_embeddings);
  EXPECT_FALSE(config.qkv_bias);
  EXPECT_EQ(config.bos_token, 1);
  EXPECT_EQ(config.eos_tokens, std::vector<int32_t>{2});
}

TEST(HfConfig, FillsInWhatTransformersAssumes) {
  EXPECT_EQ(parse(without("num_key_value_heads")).kv_heads, 4);
  EXPECT_EQ(parse(without("rope_theta")).rope_theta, 10000.0f);
  EXPECT_EQ(parse(without("rms_norm_eps")).rms_norm_epsilon, 1e-6f);
  EXPECT_EQ(parse(with("head_dim", nullptr)).head_dim, 16);
  EXPECT_EQ(parse(with("head_dim", 32)).head_dim, 32);
  EXPECT_TRUE(parse(with("tie_word_embeddings", true)).tied_embeddings);
  EXPECT_EQ(parse(with("max_position_embeddings", 512.0)).context, 512);
}

TEST(HfConfig, KnowsTheFamilyByTypeOrClass) {
  json config = without("model_type");
  config["architectures"] = {"MistralForCausalLM"};
  EXPECT_EQ(parse(config).architecture, Architecture::kMistral);
  expect_refused(without("model_type"), {"model_type is missing", "llama, mistral, qwen2"});
  expect_refused(with("model_type", "gpt_neox"), {"gpt_neox", "llama, mistral, qwen2"});
  expect_refused(with("model_type", "a\nb"), {"a b"});
  expect_refused(with("model_type", 3), {"model_type should be a string"});
}

TEST(HfConfig, ReadsTheWindowOfAMistral) {
  EXPECT_EQ(parse(with("sliding_window", 32, "mistral")).sliding_window, 32);
  EXPECT_EQ(parse(with("sliding_window", nullptr, "mistral")).sliding_window, 0);
  json unstated = base_config("mistral");
  unstated.erase("sliding_window");
  EXPECT_EQ(parse(unstated).sliding_window, 4096);
  expect_refused(with("sliding_window", -1, "mistral"), {"sliding_window"});
  expect_refused(with("sliding_window", "all", "mistral"), {"sliding_window"});
}

TEST(HfConfig, ReadsTheWindowAndBiasesOfAQwen2) {
  json config = with("sliding_window", 64, "qwen2");
  EXPECT_TRUE(parse(config).qkv_bias);
  EXPECT_EQ(parse(config).sliding_window, 0);
  config["use_sliding_window"] = false;
  EXPECT_EQ(parse(config).sliding_window, 0);
  config["use_sliding_window"] = true;
  config["max_window_layers"] = 4;  // that many of 4 attend to everything
  EXPECT_EQ(parse(config).sliding_window, 0);
  config["max_window_layers"] = 0;
  EXPECT_EQ(parse(config).sliding_window, 64);
  EXPECT_TRUE(parse(config).windowless_layers.empty());
  config["max_window_layers"] = 2;
  EXPECT_EQ(parse(config).sliding_window, 64);
  EXPECT_EQ(parse(config).windowless_layers, (std::vector<int32_t>{0, 1}));
  config["layer_types"] = std::vector<std::string>(4, "sliding_attention");
  EXPECT_EQ(parse(config).sliding_window, 64);
  EXPECT_TRUE(parse(config).windowless_layers.empty());
  config["layer_types"][1] = "full_attention";
  EXPECT_EQ(parse(config).windowless_layers, (std::vector<int32_t>{1}));
  config["layer_types"][1] = "chunked_attention";
  expect_refused(config, {"layer_types", "chunked_attention"});
  config["layer_types"] = "full_attention";
  expect_refused(config, {"layer_types"});
}

TEST(HfConfig, ReadsAQwen3) {
  json config = base_config("qwen3");
  EXPECT_EQ(parse(config).architecture, Architecture::kQwen3);
  EXPECT_EQ(parse(config).head_norm, HeadNorm::kPerHead);
  EXPECT_EQ(parse(config).head_dim, 128);  // unless stated, whatever the hidden size
  EXPECT_FALSE(parse(config).qkv_bias);
  config["head_dim"] = 32;
  EXPECT_EQ(parse(config).head_dim, 32);
  EXPECT_EQ(parse(base_config()).head_norm, HeadNorm::kNone);
  config.update({{"sliding_window", 64}, {"use_sliding_window", true}, {"max_window_layers", 0}});
  EXPECT_EQ(parse(config).sliding_window, 64);
  config["attention_bias"] = true;
  expect_refused(config, {"attention_bias"});
}

TEST(HfConfig, ReadsWhichLayersOfASmolLm3DoNotRotate) {
  json config = base_config("smollm3");
  EXPECT_EQ(parse(config).architecture, Architecture::kSmolLm3);
  EXPECT_EQ(parse(config).unrotated_layers, std::vector<int32_t>{3});
  EXPECT_TRUE(parse(config).tied_embeddings);
  EXPECT_EQ(parse(config).sliding_window, 0);
  config["no_rope_layer_interval"] = 2;
  EXPECT_EQ(parse(config).unrotated_layers, (std::vector<int32_t>{1, 3}));
  config["no_rope_layers"] = {0, 1, 1, 0};
  EXPECT_EQ(parse(config).unrotated_layers, (std::vector<int32_t>{0, 3}));
  config.update({{"sliding_window", 64}, {"use_sliding_window", true}});
  EXPECT_EQ(parse(config).sliding_window, 64);
  EXPECT_EQ(parse(config).windowless_layers, (std::vector<int32_t>{1, 2}));
  config["no_rope_layers"] = {0, 1};
  expect_refused(config, {"no_rope_layers"});
  config["no_rope_layers"] = {0, 1, 2, 3};
  expect_refused(config, {"no_rope_layers"});
  config.erase("no_rope_layers");
  config["no_rope_layer_interval"] = 0;
  expect_refused(config, {"no_rope_layer_interval"});
  config = base_config("smollm3");
  config.erase("rope_theta");
  EXPECT_EQ(parse(config).rope_theta, 2000000.0f);
}

TEST(HfConfig, ReadsTheFactorsOfAGranite) {
  json config = base_config("granite");
  EXPECT_EQ(parse(config).scales, (Scales{1.0f, 1.0f, 1.0f, 1.0f}));  // as Transformers assumes
  config.update({{"embedding_multiplier", 12.0},
                 {"residual_multiplier", 0.25},
                 {"attention_multiplier", 0.5},
                 {"logits_scaling", 8.0}});
  EXPECT_EQ(parse(config).scales, (Scales{12.0f, 0.25f, 0.5f, 0.125f}));
  EXPECT_EQ(parse(base_config()).scales, Scales());
  config["logits_scaling"] = 0;
  expect_refused(config, {"logits_scaling"});
}

TEST(HfConfig, ReadsAnOlmo2) {
  json config = base_config("olmo2");
  EXPECT_EQ(parse(config).architecture, Architecture::kOlmo2);
  EXPECT_EQ(parse(config).head_norm, HeadNorm::kWhole);
  EXPECT_EQ(parse(config).block_norms, BlockNorms::kAfter);
  EXPECT_EQ(parse(base_config()).block_norms, BlockNorms::kBefore);
  config.erase("rms_norm_eps");
  EXPECT_EQ(parse(config).rms_norm_epsilon, 1e-5f);
  config["attention_bias"] = true;
  expect_refused(config, {"attention_bias"});
}

TEST(HfConfig, ReadsAPhi3) {
  json config = base_config("phi3");
  EXPECT_EQ(parse(config).architecture, Architecture::kPhi3);
  EXPECT_TRUE(parse(config).fused_qkv);
  EXPECT_TRUE(parse(config).fused_gate_up);
  EXPECT_EQ(parse(config).rotary_dim, 0);
  EXPECT_EQ(parse(config).sliding_window, 0);
  config["sliding_window"] = 64;
  EXPECT_EQ(parse(config).sliding_window, 64);
  config["partial_rotary_factor"] = 0.75;
  EXPECT_EQ(parse(config).rotary_dim, 12);
  config["partial_rotary_factor"] = 0.01;
  expect_refused(config, {"partial_rotary_factor"});
}

TEST(HfConfig, ReadsAMixtral) {
  json config = base_config("mixtral");
  config.update({{"num_local_experts", 6}, {"num_experts_per_tok", 3}, {"norm_topk_prob", false}});
  ModelConfig parsed = parse(config);
  EXPECT_EQ(parsed.architecture, Architecture::kMixtral);
  EXPECT_EQ(parsed.head_norm, HeadNorm::kNone);
  EXPECT_EQ(parsed.experts, (Experts{.count = 6, .used = 3, .intermediate_size = 128, .normalized = true}));
  EXPECT_EQ(parsed.sliding_window, 0);
  config["sliding_window"] = 64;
  EXPECT_EQ(parse(config).sliding_window, 64);
  config["num_experts"] = 7;
  expect_refused(config, {"num_local_experts", "6", "7"});
  config["num_experts"] = 6;
  // What Transformers assumes.
  for (const char* key : {"num_local_experts", "num_experts", "num_experts_per_tok", "num_key_value_heads",
                          "rms_norm_eps", "rope_theta", "sliding_window"}) {
    config.erase(key);
  }
  config["num_attention_heads"] = 8;
  parsed = parse(config);
  EXPECT_EQ(parsed.experts, (Experts{.count = 8, .used = 2, .intermediate_size = 128, .normalized = true}));
  EXPECT_EQ(parsed.kv_heads, 8);
  EXPECT_EQ(parsed.rms_norm_epsilon, 1e-5f);
  EXPECT_EQ(parsed.rope_theta, 1e6f);
  EXPECT_EQ(parsed.sliding_window, 0);
}

TEST(HfConfig, ReadsAQwen3Moe) {
  json config = base_config("qwen3_moe");
  config.update({{"num_experts", 6}, {"num_experts_per_tok", 3}, {"moe_intermediate_size", 40}});
  ModelConfig parsed = parse(config);
  EXPECT_EQ(parsed.architecture, Architecture::kQwen3Moe);
  EXPECT_EQ(parsed.head_norm, HeadNorm::kPerHead);
  EXPECT_EQ(parsed.experts, (Experts{.count = 6, .used = 3, .intermediate_size = 40, .normalized = false}));
  EXPECT_EQ(parsed.intermediate_size, 128);
  EXPECT_TRUE(parsed.dense_layers.empty());
  config["norm_topk_prob"] = true;
  EXPECT_TRUE(parse(config).experts.normalized);
  config["mlp_only_layers"] = {2, 0};
  EXPECT_EQ(parse(config).dense_layers, (std::vector<int32_t>{0, 2}));
  config["decoder_sparse_step"] = 2;
  config["mlp_only_layers"] = {3};
  EXPECT_EQ(parse(config).dense_layers, (std::vector<int32_t>{0, 2, 3}));
  config["mlp_only_layers"] = {3, 1};
  EXPECT_EQ(parse(config).experts, Experts());  // every layer is dense: it is a Qwen3
  EXPECT_TRUE(parse(config).dense_layers.empty());
  // What Transformers assumes.
  for (const char* key : {"num_experts", "num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob",
                          "mlp_only_layers", "decoder_sparse_step", "num_key_value_heads", "rope_theta"}) {
    config.erase(key);
  }
  parsed = parse(config);
  EXPECT_EQ(parsed.experts,
            (Experts{.count = 128, .used = 8, .intermediate_size = 768, .normalized = false}));
  EXPECT_EQ(parsed.kv_heads, 4);
  EXPECT_EQ(parsed.rope_theta, 10000.0f);
}

json gpt_oss_config() {
  json config = base_config("gpt_oss");
  config.erase("sliding_window");
  config["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 32.0}, {"truncate", false}, {"original_max_position_embeddings", 16}};
  return config;
}

TEST(HfConfig, ReadsAGptOss) {
  json config = gpt_oss_config();
  config.update({{"num_local_experts", 6}, {"num_experts_per_tok", 3}, {"sliding_window", 32}});
  ModelConfig parsed = parse(config);
  EXPECT_EQ(parsed.architecture, Architecture::kGptOss);
  const Experts experts{.count = 6, .used = 3, .intermediate_size = 128, .normalized = true, .biases = true};
  EXPECT_EQ(parsed.experts, experts);
  EXPECT_TRUE(parsed.qkv_bias);
  EXPECT_TRUE(parsed.output_bias);
  EXPECT_TRUE(parsed.head_sinks);
  EXPECT_EQ(parsed.activation, Activation::kClampedSilu);
  EXPECT_EQ(parsed.activation_limit, 7.0f);
  EXPECT_EQ(parsed.sliding_window, 32);
  EXPECT_EQ(parsed.windowless_layers, (std::vector<int32_t>{1, 3}));
  EXPECT_FALSE(parsed.rope_scaling.yarn.truncate);
  EXPECT_EQ(parsed.context, 512);
  config["layer_types"] = {"full_attention", "full_attention", "full_attention", "sliding_attention"};
  EXPECT_EQ(parse(config).windowless_layers, (std::vector<int32_t>{0, 1, 2}));
  config["swiglu_limit"] = 5.5;
  EXPECT_EQ(parse(config).activation_limit, 5.5f);
  config["attention_bias"] = false;
  EXPECT_FALSE(parse(config).qkv_bias);
  EXPECT_FALSE(parse(config).output_bias);
  config["quantization_config"] = {{"quant_method", "mxfp4"}};
  parse(config);
  // What Transformers assumes.
  config = gpt_oss_config();
  config.erase("num_key_value_heads");
  config.erase("rope_theta");
  config["num_attention_heads"] = 8;
  parsed = parse(config);
  EXPECT_EQ(parsed.experts.count, 128);
  EXPECT_EQ(parsed.experts.used, 4);
  EXPECT_EQ(parsed.kv_heads, 8);
  EXPECT_EQ(parsed.head_dim, 64);
  EXPECT_EQ(parsed.rope_theta, 150000.0f);
  EXPECT_EQ(parsed.sliding_window, 128);
}

TEST(HfConfig, RefusesAGptOssThatItDoesNotKnow) {
  const auto refused = [](const std::string& key, const json& value,
                          std::initializer_list<std::string> parts) {
    json config = gpt_oss_config();
    config[key] = value;
    expect_refused(config, parts);
  };
  refused("rope_scaling", nullptr, {"rope_scaling is missing"});
  refused("swiglu_limit", 0.0, {"limit of the activation"});
  refused("quantization_config", {{"quant_method", "gptq"}}, {"gptq", "mxfp4"});
  refused("hidden_act", "gelu", {"hidden_act"});
  refused("num_local_experts", 2, {"number of experts that a row goes through is 4"});
  json config = gpt_oss_config();
  config.update({{"num_experts_per_tok", 3}, {"experts_per_token", 2}});
  expect_refused(config, {"num_experts_per_tok is 3", "experts_per_token is 2"});
}

TEST(HfConfig, RefusesExpertsThatItDoesNotKnow) {
  const auto refused = [](const std::string& key, const json& value, std::initializer_list<std::string> parts,
                          const char* type = "qwen3_moe") {
    json config = base_config(type);
    config[key] = value;
    expect_refused(config, parts);
  };
  refused("decoder_sparse_step", 0, {"decoder_sparse_step is 0"});
  refused("mlp_only_layers", 1, {"mlp_only_layers", "list"});
  refused("mlp_only_layers", {4}, {"mlp_only_layers", "4"});
  refused("mlp_only_layers", {-1}, {"mlp_only_layers", "-1"});
  refused("mlp_only_layers", {"1"}, {"mlp_only_layers", "1"});
  refused("num_experts", -8, {"number of experts", "-8"});
  refused("num_experts", 1'000'000, {"number of experts", "1000000"});
  refused("num_experts", 7, {"number of experts that a row goes through is 8"});
  refused("num_experts_per_tok", 0, {"number of experts that a row goes through is 0"});
  refused("moe_intermediate_size", 0, {"intermediate size of experts"});
  refused("num_local_experts", 0, {"number of experts is 0"}, "mixtral");
  refused("hidden_act", "gelu", {"hidden_act"}, "mixtral");
  for (const char* type : {"mixtral", "qwen3_moe"}) {
    for (const char* key : {"shared_expert_intermediate_size", "n_shared_experts", "num_shared_experts"}) {
      refused(key, 1, {key}, type);
      json config = base_config(type);
      config[key] = 0;
      parse(config);
    }
  }
  for (const char* type : {"mixtral", "qwen3_moe"}) {
    refused("routed_scaling_factor", 2.5, {"routed_scaling_factor", "2.5"}, type);
    refused("scoring_func", "sigmoid", {"scoring_func", "sigmoid", "softmax"}, type);
    refused("router_logit_softcapping", 30.0, {"router_logit_softcapping", "30"}, type);
    refused("n_group", 8, {"n_group of 8", "topk_group of 1"}, type);
    refused("topk_group", 4, {"n_group of 1", "topk_group of 4"}, type);
    json neutral = base_config(type);
    neutral.update({{"routed_scaling_factor", 1.0},
                    {"scoring_func", "softmax"},
                    {"router_logit_softcapping", 0.0},
                    {"n_group", 4},
                    {"topk_group", 4}});
    EXPECT_EQ(parse(neutral).experts, parse(base_config(type)).experts);
    neutral.update({{"router_logit_softcapping", nullptr}, {"n_group", 1}, {"topk_group", 1}});
    EXPECT_EQ(parse(neutral).experts, parse(base_config(type)).experts);
  }
  // Versions of Transformers differ in which layers have the window.
  json config = base_config("qwen3_moe");
  config.update({{"use_sliding_window", true}, {"sliding_window", 16}, {"max_window_layers", 2}});
  expect_refused(config, {"max_window_layers"});
  config["max_window_layers"] = 0;
  EXPECT_EQ(parse(config).sliding_window, 16);
  EXPECT_TRUE(parse(config).windowless_layers.empty());
  config["layer_types"] =
      json::array({"full_attention", "full_attention", "full_attention", "full_attention"});
  expect_refused(config, {"layer_types"});
  config["use_sliding_window"] = false;
  EXPECT_EQ(parse(config).sliding_window, 0);
}

TEST(HfConfig, ReadsAGlm4) {
  json config = base_config("glm4");
  config.update({{"head_dim", 20}, {"attention_bias", false}, {"partial_rotary_factor", 0.3}});
  ModelConfig parsed = parse(config);
  EXPECT_EQ(parsed.architecture, Architecture::kGlm4);
  EXPECT_EQ(parsed.block_norms, BlockNorms::kBoth);
  EXPECT_EQ(parsed.sliding_window, 0);
  EXPECT_EQ(parsed.rotary_dim, 6);
  EXPECT_TRUE(parsed.rope_interleaved);
  EXPECT_FALSE(parsed.fused_qkv);
  EXPECT_TRUE(parsed.fused_gate_up);
  EXPECT_FALSE(parsed.qkv_bias);
  config["attention_bias"] = true;
  EXPECT_TRUE(parse(config).qkv_bias);
  config.erase("partial_rotary_factor");
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 4000}, {"partial_rotary_factor", 1}};
  parsed = parse(config);
  EXPECT_EQ(parsed.rotary_dim, 0);
  EXPECT_EQ(parsed.rope_theta, 4000.0f);
  // What Transformers assumes.
  for (const char* key :
       {"head_dim", "attention_bias", "rope_parameters", "num_key_value_heads", "rms_norm_eps"})
    config.erase(key);
  parsed = parse(config);
  EXPECT_EQ(parsed.head_dim, 128);
  EXPECT_EQ(parsed.rotary_dim, 64);
  EXPECT_EQ(parsed.kv_heads, 2);
  EXPECT_EQ(parsed.rms_norm_epsilon, 1.5625e-7f);
  EXPECT_TRUE(parsed.qkv_bias);
  config["mlp_bias"] = true;
  expect_refused(config, {"mlp_bias"});
  config.erase("mlp_bias");
  config["partial_rotary_factor"] = 1.5;
  expect_refused(config, {"partial_rotary_factor"});
}

TEST(HfConfig, ReadsLongRope) {
  json config = base_config("phi3");
  config["original_max_position_embeddings"] = 128;
  const json factors = {{"short_factor", {1, 1, 1, 1, 1, 1, 1, 2}},
                        {"long_factor", {2, 2, 2, 2, 2, 2, 2, 4}}};
  for (const char* type : {"longrope", "su", "yarn"}) {
    config["rope_scaling"] = factors;
    config["rope_scaling"]["type"] = type;
    const ModelConfig parsed = parse(config);
    EXPECT_EQ(parsed.rope_scaling.kind, RopeScaling::Kind::kLongRope);
    EXPECT_EQ(parsed.rope_scaling.original_context, 128);
    EXPECT_EQ(parsed.rope_scaling.factor, 4.0f);
    EXPECT_EQ(parsed.context, 512);
    EXPECT_EQ(parsed.rope_scaling.long_rope.short_factors.back(), 2.0f);
    EXPECT_EQ(parsed.rope_scaling.long_rope.long_factors.back(), 4.0f);
    EXPECT_FLOAT_EQ(parsed.rope_scaling.long_rope.attention_factor, 1.1338934f);  // √(1 + ln 4 / ln 128)
  }
  config["rope_scaling"]["attention_factor"] = 1.5;
  EXPECT_EQ(parse(config).rope_scaling.long_rope.attention_factor, 1.5f);
  config["rope_scaling"]["long_mscale"] = 1.5;
  expect_refused(config, {"long_mscale"});
  config["rope_scaling"].erase("long_mscale");
  config["rope_scaling"]["long_factor"] = {1, 2};
  expect_refused(config, {"2 RoPE frequency factors"});
  config["rope_scaling"].erase("long_factor");
  expect_refused(config, {"long_factor"});
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 2}};
  expect_refused(config, {"linear", "phi3"});
}

TEST(HfConfig, ReadsAGemma2) {
  json config = base_config("gemma2");
  config["sliding_window"] = 64;
  ModelConfig parsed = parse(config);
  EXPECT_EQ(parsed.architecture, Architecture::kGemma2);
  EXPECT_EQ(parsed.block_norms, BlockNorms::kBoth);
  EXPECT_EQ(parsed.head_norm, HeadNorm::kNone);
  EXPECT_TRUE(parsed.norms_less_one);
  EXPECT_TRUE(parsed.tied_embeddings);
  EXPECT_EQ(parsed.activation, Activation::kGeluTanh);
  EXPECT_EQ(parsed.head_dim, 256);
  EXPECT_EQ(parsed.scales, (Scales{8.0f, 1.0f, 1.0f / 16.0f, 1.0f}));
  EXPECT_EQ(parsed.soft_caps, (SoftCaps{50.0f, 30.0f}));
  EXPECT_EQ(parsed.sliding_window, 64);
  EXPECT_EQ(parsed.windowless_layers, (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(parsed.window_rope_theta, 0.0f);
  config.update(
      {{"attn_logit_softcapping", nullptr},
       {"final_logit_softcapping", 4},
       {"query_pre_attn_scalar", 144},
       {"head_dim", 32},
       {"layer_types", {"full_attention", "sliding_attention", "full_attention", "full_attention"}}});
  parsed = parse(config);
  EXPECT_EQ(parsed.soft_caps, (SoftCaps{0.0f, 4.0f}));
  EXPECT_EQ(parsed.scales.attention, 1.0f / 12.0f);
  EXPECT_EQ(parsed.windowless_layers, (std::vector<int32_t>{0, 2, 3}));
  config["hidden_activation"] = "gelu";
  expect_refused(config, {"hidden_activation gelu"});
  config = base_config("gemma2");
  config["use_bidirectional_attention"] = true;
  expect_refused(config, {"use_bidirectional_attention"});
}

TEST(HfConfig, ReadsAGemma3) {
  json config = base_config("gemma3_text");
  config.erase("rope_theta");
  config.update({{"sliding_window", 64}, {"num_hidden_layers", 7}});
  ModelConfig parsed = parse(config);
  EXPECT_EQ(parsed.architecture, Architecture::kGemma3);
  EXPECT_EQ(parsed.head_norm, HeadNorm::kPerHead);
  EXPECT_EQ(parsed.soft_caps, SoftCaps());
  EXPECT_EQ(parsed.windowless_layers, std::vector<int32_t>{5});
  EXPECT_EQ(parsed.rope_theta, 1e6f);
  EXPECT_EQ(parsed.window_rope_theta, 1e4f);
  config.update({{"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}},
                 {"rope_local_base_freq", 5000},
                 {"sliding_window_pattern", 2}});
  parsed = parse(config);
  EXPECT_EQ(parsed.rope_scaling.factor, 8.0f);
  EXPECT_EQ(parsed.context, 512);  // states the scaled one
  EXPECT_EQ(parsed.window_rope_theta, 5000.0f);
  EXPECT_EQ(parsed.windowless_layers, (std::vector<int32_t>{1, 3, 5}));
  config.erase("rope_scaling");
  config["rope_parameters"] = {
      {"full_attention", {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 2e6}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 3e4}}}};
  parsed = parse(config);
  EXPECT_EQ(parsed.rope_scaling.factor, 4.0f);
  EXPECT_EQ(parsed.rope_theta, 2e6f);
  EXPECT_EQ(parsed.window_rope_theta, 3e4f);
  config["rope_parameters"]["full_attention"] = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}};
  EXPECT_EQ(parse(config).rope_scaling.original_context, 64);
  for (const char* const kind : {"full_attention", "sliding_attention"}) {
    json partial = config;
    partial["rope_parameters"][kind]["partial_rotary_factor"] = 0.5;
    expect_refused(partial, {"partial_rotary_factor"});
  }
  config["rope_parameters"]["sliding_attention"] = {{"rope_type", "linear"}, {"factor", 4.0}};
  expect_refused(config, {"layers with a window"});
  config["model_type"] = "llama";
  expect_refused(config, {"by kind of layer"});
}

TEST(HfConfig, RefusesFeaturesTheEngineLacks) {
  expect_refused(with("attention_bias", true), {"attention_bias"});
  expect_refused(with("mlp_bias", true), {"mlp_bias"});
  expect_refused(with("hidden_act", "gelu"), {"hidden_act gelu"});
  expect_refused(with("partial_rotary_factor", 0.5), {"partial_rotary_factor"});
  expect_refused(with("quantization_config", {{"quant_method", "gptq"}}), {"quantization_config"});
}

TEST(HfConfig, ReadsRopeScaling) {
  EXPECT_EQ(parse(with("rope_scaling", nullptr)).rope_scaling.kind, RopeScaling::Kind::kNone);
  EXPECT_EQ(parse(with("rope_scaling", {{"rope_type", "default"}})).rope_scaling.kind,
            RopeScaling::Kind::kNone);
  const RopeScaling linear = parse(with("rope_scaling", {{"type", "linear"}, {"factor", 4}})).rope_scaling;
  EXPECT_EQ(linear.kind, RopeScaling::Kind::kLinear);
  EXPECT_EQ(linear.factor, 4.0f);
  const json llama3 = {{"rope_type", "llama3"},
                       {"factor", 8.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 4096}};
  const RopeScaling scaling = parse(with("rope_scaling", llama3)).rope_scaling;
  EXPECT_EQ(scaling.kind, RopeScaling::Kind::kLlama3);
  EXPECT_EQ(scaling.factor, 8.0f);
  EXPECT_EQ(scaling.low_frequency_factor, 1.0f);
  EXPECT_EQ(scaling.high_frequency_factor, 4.0f);
  EXPECT_EQ(scaling.original_context, 4096);
}

json yarn(json more) {
  more["rope_type"] = "yarn";
  return with("rope_scaling", more);
}

TEST(HfConfig, ReadsYarnScaling) {
  const RopeScaling all = parse(yarn({{"factor", 4.0},
                                      {"original_max_position_embeddings", 256},
                                      {"attention_factor", 1.25},
                                      {"mscale", 0.5},
                                      {"mscale_all_dim", 2.0},
                                      {"beta_fast", 24},
                                      {"beta_slow", 2.5},
                                      {"truncate", false}}))
                              .rope_scaling;
  EXPECT_EQ(all.kind, RopeScaling::Kind::kYarn);
  EXPECT_EQ(all.factor, 4.0f);
  EXPECT_EQ(all.original_context, 256);
  EXPECT_EQ(all.yarn, (YarnScaling{1.25f, 24.0f, 2.5f, false}));
  // The old name of the type, and what Transformers takes where nothing is said.
  const RopeScaling least = parse(with("rope_scaling", {{"type", "yarn"}, {"factor", 8}})).rope_scaling;
  EXPECT_EQ(least.kind, RopeScaling::Kind::kYarn);
  EXPECT_EQ(least.original_context, 512);
  EXPECT_EQ(least.yarn, (YarnScaling{1.2079441541679836f, 32.0f, 1.0f, true}));
  // So it takes nulls and zeros.
  const RopeScaling nulls = parse(yarn({{"factor", 8},
                                        {"original_max_position_embeddings", nullptr},
                                        {"attention_factor", nullptr},
                                        {"mscale", 0},
                                        {"beta_fast", nullptr},
                                        {"beta_slow", 0}}))
                                .rope_scaling;
  EXPECT_EQ(nulls, least);
}

TEST(HfConfig, DerivesYarnsAttentionFactorAsTransformersDoes) {
  const auto factor = [](const json& fields) {
    return parse(yarn(fields)).rope_scaling.yarn.attention_factor;
  };
  EXPECT_FLOAT_EQ(factor({{"factor", 4.0}}), 1.138629436111989f);
  EXPECT_FLOAT_EQ(factor({{"factor", 8.0}, {"mscale", 0.5}}), 1.2079441541679836f);
  EXPECT_FLOAT_EQ(factor({{"factor", 8.0}, {"mscale", 0.5}, {"mscale_all_dim", 2.0}}), 0.7797027990021634f);
  EXPECT_FLOAT_EQ(factor({{"factor", 40.0}, {"mscale", 1.0}, {"mscale_all_dim", 0.707}}),
                  1.0857263992561355f);
  EXPECT_FLOAT_EQ(factor({{"factor", 0.5}}), 1.0f);
}

TEST(HfConfig, DerivesYarnsFactorFromTheContexts) {
  const RopeScaling scaling = parse(yarn({{"original_max_position_embeddings", 32}})).rope_scaling;
  EXPECT_EQ(scaling.factor, 16.0f);
  EXPECT_FLOAT_EQ(scaling.yarn.attention_factor, 1.2772588722239782f);
  json outside = yarn({{"factor", nullptr}, {"original_max_position_embeddings", 64}});
  outside["original_max_position_embeddings"] = 32;
  EXPECT_EQ(parse(outside).rope_scaling, scaling);
}

TEST(HfConfig, ReadsDynamicScaling) {
  for (const char* key : {"type", "rope_type"}) {
    const RopeScaling scaling = parse(with("rope_scaling", {{key, "dynamic"}, {"factor", 2.0}})).rope_scaling;
    EXPECT_EQ(scaling.kind, RopeScaling::Kind::kDynamic);
    EXPECT_EQ(scaling.factor, 2.0f);
    EXPECT_EQ(scaling.original_context, 512);
  }
  const json other = {{"type", "dynamic"}, {"factor", 2.0}, {"original_max_position_embeddings", 128}};
  EXPECT_EQ(parse(with("rope_scaling", other)).rope_scaling.original_context, 512);
}

TEST(HfConfig, TheContextFollowsTheScaling) {
  const auto context = [](const char* kind, double factor, int32_t original) {
    json scaling = {{"rope_type", kind}, {"factor", factor}};
    if (original > 0) scaling["original_max_position_embeddings"] = original;
    return parse(with("rope_scaling", scaling)).context;
  };
  for (const char* kind : {"linear", "dynamic", "yarn"}) {
    EXPECT_EQ(context(kind, 4.0, 0), 2048) << kind;
    EXPECT_EQ(context(kind, 1.5, 0), 768) << kind;
    EXPECT_EQ(context(kind, 0.5, 0), 512) << kind;
    EXPECT_EQ(context(kind, 4.0, 128), 512) << kind;
    EXPECT_EQ(context(kind, 4.0, 512), 2048) << kind;
    EXPECT_EQ(context(kind, 2.0, 128), 512) << kind;
  }
  EXPECT_EQ(context("default", 4.0, 0), 512);
  const json llama3 = {{"rope_type", "llama3"},
                       {"factor", 8.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 256}};
  EXPECT_EQ(parse(with("rope_scaling", llama3)).context, 512);
  expect_refused(with("rope_scaling", {{"type", "linear"}, {"factor", 1e9}}), {"context"});
}

TEST(HfConfig, ReadsRopeParameters) {
  const ModelConfig config =
      parse(with("rope_parameters", {{"rope_theta", 1e6}, {"rope_type", "linear"}, {"factor", 2.0}}));
  EXPECT_EQ(config.rope_theta, 1e6f);
  EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::kLinear);
  EXPECT_EQ(parse(with("rope_parameters", {{"rope_theta", 1e6}})).rope_scaling.kind,
            RopeScaling::Kind::kNone);
}

TEST(HfConfig, RefusesOtherRopeScalings) {
  for (const char* kind : {"longrope", "mrope", "ntk"}) {
    expect_refused(with("rope_scaling", {{"type", kind}, {"factor", 4.0}}),
                   {kind, "default, linear, dynamic, yarn and llama3"});
  }
  expect_refused(with("rope_scaling", {{"factor", 4.0}}), {"no rope_type"});
  expect_refused(with("rope_scaling", {{"type", "linear"}}), {"factor is missing"});
  expect_refused(with("rope_scaling", {{"type", "linear"}, {"factor", 0.0}}), {"factor"});
  expect_refused(with("rope_scaling", {{"type", "llama3"}, {"factor", 8.0}}), {"low_freq_factor is missing"});
  expect_refused(with("rope_scaling", 4), {"JSON object"});
  expect_refused(with("rope_scaling", {{"type", "dynamic"}}), {"factor is missing"});
  expect_refused(with("rope_scaling", {{"type", "dynamic"}, {"factor", -1.0}}), {"factor"});
  json narrow = with("rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}});
  narrow["head_dim"] = 2;
  expect_refused(narrow, {"at least 4 rotated elements of a head"});
  expect_refused(yarn(json::object()), {"factor is missing"});
  expect_refused(yarn({{"factor", 0.0}}), {"factor"});
  expect_refused(yarn({{"factor", 4.0}, {"original_max_position_embeddings", 0}}), {"original context"});
  expect_refused(yarn({{"factor", 4.0}, {"attention_factor", -1.0}}), {"attention factor"});
  expect_refused(yarn({{"factor", 4.0}, {"beta_fast", -1.0}}), {"beta_fast"});
  expect_refused(yarn({{"factor", 4.0}, {"beta_slow", 40.0}}), {"beta_fast", "beta_slow"});
  expect_refused(yarn({{"factor", 4.0}, {"truncate", 1}}), {"truncate"});
  json flat = yarn({{"factor", 4.0}});
  flat["rope_theta"] = 1.0;
  expect_refused(flat, {"theta"});
}

TEST(HfConfig, TakesSpecialTokensFromTheGenerationConfigFirst) {
  EXPECT_EQ(parse(base_config(), R"({"eos_token_id":[7,8,7]})").eos_tokens, (std::vector<int32_t>{7, 8}));
  EXPECT_EQ(parse(base_config(), R"({"eos_token_id":7,"bos_token_id":9})").bos_token, 9);
  EXPECT_EQ(parse(base_config(), R"({"temperature":0.7})").eos_tokens, std::vector<int32_t>{2});
  EXPECT_EQ(parse(base_config(), R"({"eos_token_id":null})").eos_tokens, std::vector<int32_t>{2});
  EXPECT_TRUE(parse(without("eos_token_id")).eos_tokens.empty());
  EXPECT_EQ(parse(without("bos_token_id")).bos_token, std::nullopt);
  expect_bad_input([] { parse(base_config(), "{"); }, {"model/generation_config.json", "not valid JSON"});
  expect_bad_input([] { parse(base_config(), R"({"eos_token_id":"x"})"); },
                   {"model/generation_config.json", "eos_token_id"});
}

TEST(HfConfig, IgnoresSpecialTokensOutsideTheVocabulary) {
  EXPECT_EQ(parse(with("bos_token_id", -1)).bos_token, std::nullopt);
  EXPECT_EQ(parse(with("bos_token_id", 100)).bos_token, std::nullopt);
  EXPECT_EQ(parse(with("eos_token_id", {-1, 99, 100})).eos_tokens, std::vector<int32_t>{99});
}

TEST(HfConfig, RefusesMissingAndMistypedFields) {
  for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                          "vocab_size", "max_position_embeddings"}) {
    expect_refused(without(key), {key, "missing"});
    expect_refused(with(key, nullptr), {key, "missing"});
    for (const json& value : {json("64"), json(true), json(64.5), json(1e300), json(int64_t{1} << 31),
                              json(~uint64_t{0}), json::array(), json::object()}) {
      expect_refused(with(key, value), {key, "an integer"});
    }
  }
  expect_refused(with("rms_norm_eps", "small"), {"rms_norm_eps"});
  expect_refused(with("rope_theta", 1e300), {"rope_theta", "finite"});
  expect_refused(with("tie_word_embeddings", 1), {"tie_word_embeddings", "true or false"});
}

TEST(HfConfig, RefusesSizesThatMakeNoSense) {
  for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                          "num_key_value_heads", "head_dim", "vocab_size", "max_position_embeddings"}) {
    expect_refused(with(key, 0), {});
    expect_refused(with(key, -4), {});
    expect_refused(with(key, 2147483647), {});
  }
  expect_refused(with("num_key_value_heads", 3), {"4 heads", "3 key-value heads"});
  expect_refused(with("head_dim", 15), {"15", "odd"});
  expect_refused(with("num_attention_heads", 5), {"head_dim"});
  expect_refused(with("rms_norm_eps", 0), {"epsilon"});
  expect_refused(with("rms_norm_eps", -1e-5), {"epsilon"});
  expect_refused(with("rope_theta", 0), {"theta"});
}

TEST(HfConfig, RefusesWhatIsNotJson) {
  const auto expect_text_refused = [](const std::string& text, std::initializer_list<std::string> parts) {
    expect_bad_input([&] { parse_hf_config(text, std::nullopt, "model"); }, {"model/config.json"});
    expect_bad_input([&] { parse_hf_config(text, std::nullopt, "model"); }, parts);
  };
  expect_text_refused("", {"not valid JSON"});
  expect_text_refused("{\n\"a\": tru\n}", {"not valid JSON at byte"});
  expect_text_refused("[]", {"a JSON object"});
  expect_text_refused("null", {"a JSON object"});
  expect_text_refused(R"({"hidden_size": NaN})", {"not valid JSON"});
  expect_text_refused(R"({"hidden_size": 1e999})", {"number that is too large"});
  expect_text_refused("{\"a\":\"\xff\"}", {"not valid JSON"});
  expect_text_refused(R"({"a":1,"a":2})", {"a is there twice"});
  for (const char* opening : {"[", "{\"a\":"}) {
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += opening;
    expect_text_refused(deep, {"nests deeper"});
  }
}

TEST(HfConfig, FindsTheTokenizer) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(find_tokenizer(folder.path()).kind, TokenizerSource::Kind::kNone);
  folder.write("vocab.json", "{}");
  EXPECT_EQ(find_tokenizer(folder.path()).kind, TokenizerSource::Kind::kNone);
  folder.write("merges.txt", "");
  EXPECT_EQ(find_tokenizer(folder.path()).kind, TokenizerSource::Kind::kTokenizerJson);
  EXPECT_EQ(find_tokenizer(folder.path()).path, folder.path() / "vocab.json");
  folder.write("tokenizer.json", "{}");
  EXPECT_EQ(find_tokenizer(folder.path()).path, folder.path() / "tokenizer.json");
  folder.write("tokenizer.model", "");
  EXPECT_EQ(find_tokenizer(folder.path()).kind, TokenizerSource::Kind::kSentencePieceModel);
  EXPECT_EQ(find_tokenizer(folder.path()).path, folder.path() / "tokenizer.model");
}

}  // namespace
}  // namespace hf_config_test
}  // namespace verbatim
