#include "prepare/folder_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/rope_scaling.h"

namespace verbatim {

namespace {

using nlohmann::ordered_json;

/// A float with as few digits as tell it from every other one.
ordered_json shortest(float value) {
  return ordered_json::parse(fmt::format("{}", value));
}

bool is_listed(const std::vector<int32_t>& layers, int32_t layer) {
  return std::binary_search(layers.begin(), layers.end(), layer);
}

void add_windows(const ModelConfig& config, ordered_json& json) {
  using enum Architecture;
  const bool none = config.sliding_window == 0;
  switch (config.architecture) {
    case kQwen2:
    case kQwen3:
    case kQwen3Moe:
      json["use_sliding_window"] = !none;
      if (none) return;
      json["max_window_layers"] = 0;
      break;
    case kMistral:
    case kMixtral:
    case kPhi3:
    case kStarcoder2:
      json["sliding_window"] = none ? ordered_json(nullptr) : ordered_json(config.sliding_window);
      return;
    case kGemma2:
    case kGemma3:
    case kGptOss: {
      ordered_json types = ordered_json::array();
      for (int32_t layer = 0; layer < config.layers; ++layer) {
        const bool full = none || is_listed(config.windowless_layers, layer);
        types.push_back(full ? "full_attention" : "sliding_attention");
      }
      json["layer_types"] = types;
      break;
    }
    default:
      return;
  }
  if (!none) json["sliding_window"] = config.sliding_window;
}

void add_long_rope(const ModelConfig& config, ordered_json& json) {
  const RopeScaling& scaling = config.rope_scaling;
  const auto list = [](const std::vector<float>& factors) {
    ordered_json numbers = ordered_json::array();
    for (const float factor : factors) numbers.push_back(shortest(factor));
    return numbers;
  };
  json["original_max_position_embeddings"] = scaling.original_context;
  ordered_json& parameters = json["rope_scaling"];
  parameters = {{"type", "longrope"},
                {"short_factor", list(scaling.long_rope.short_factors)},
                {"long_factor", list(scaling.long_rope.long_factors)}};
  // Some programs refuse any other field, so that this one is there only where it cannot be derived.
  const double factor = static_cast<double>(config.context) / scaling.original_context;
  if (scaling.long_rope.attention_factor != long_rope_attention_factor(factor, scaling.original_context)) {
    parameters["attention_factor"] = shortest(scaling.long_rope.attention_factor);
  }
}

void add_positions(const ModelConfig& config, ordered_json& json) {
  json["max_position_embeddings"] = config.context;
  json["rope_theta"] = shortest(config.rope_theta);
  if (config.window_rope_theta > 0) json["rope_local_base_freq"] = shortest(config.window_rope_theta);
  const RopeScaling& scaling = config.rope_scaling;
  if (scaling.kind == RopeScaling::Kind::kNone && config.architecture == Architecture::kGptOss) {
    json["rope_scaling"] = {{"rope_type", "default"}};  // A gpt-oss without the field is refused.
  }
  if (scaling.kind == RopeScaling::Kind::kLinear) {
    json["rope_scaling"] = {{"rope_type", "linear"},
                            {"factor", shortest(scaling.factor)},
                            {"original_max_position_embeddings",
                             static_cast<int32_t>(static_cast<float>(config.context) / scaling.factor)}};
  }
  if (scaling.kind == RopeScaling::Kind::kYarn) {
    json["rope_scaling"] = {{"rope_type", "yarn"},
                            {"factor", shortest(scaling.factor)},
                            {"original_max_position_embeddings", scaling.original_context},
                            {"attention_factor", shortest(scaling.yarn.attention_factor)},
                            {"beta_fast", shortest(scaling.yarn.beta_fast)},
                            {"beta_slow", shortest(scaling.yarn.beta_slow)},
                            {"truncate", scaling.yarn.truncate}};
  }
  if (scaling.kind == RopeScaling::Kind::kLlama3) {
    json["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", shortest(scaling.factor)},
                            {"low_freq_factor", shortest(scaling.low_frequency_factor)},
                            {"high_freq_factor", shortest(scaling.high_frequency_factor)},
                            {"original_max_position_embeddings", scaling.original_context}};
  }
  if (scaling.kind == RopeScaling::Kind::kLongRope) add_long_rope(config, json);
  const bool partly =
      config.architecture == Architecture::kPhi3 || config.architecture == Architecture::kGlm4;
  if (partly) {
    json["partial_rotary_factor"] =
        shortest(static_cast<float>(rotated_elements(config)) / static_cast<float>(config.head_dim));
  }
}

/// The number, mostly a whole one, of which a factor on scores is one over the square root.
ordered_json query_scalar(float factor) {
  const float scalar = 1.0f / (factor * factor);
  const float whole = std::round(scalar);
  return shortest(1.0f / std::sqrt(whole) == factor ? whole : scalar);
}

void add_family_fields(const ModelConfig& config, ordered_json& json) {
  const auto cap = [](float value) { return value > 0 ? shortest(value) : ordered_json(nullptr); };
  switch (config.architecture) {
    case Architecture::kSmolLm3: {
      ordered_json rotates = ordered_json::array();
      for (int32_t layer = 0; layer < config.layers; ++layer) {
        rotates.push_back(is_listed(config.unrotated_layers, layer) ? 0 : 1);
      }
      json["no_rope_layers"] = rotates;
      break;
    }
    case Architecture::kGranite:
      json["embedding_multiplier"] = shortest(config.scales.embedding);
      json["residual_multiplier"] = shortest(config.scales.residual);
      json["attention_multiplier"] = shortest(config.scales.attention);
      json["logits_scaling"] = shortest(1.0f / config.scales.logits);
      break;
    case Architecture::kGemma2:
    case Architecture::kGemma3:
      json["hidden_activation"] = "gelu_pytorch_tanh";
      json["query_pre_attn_scalar"] = query_scalar(config.scales.attention);
      json["attn_logit_softcapping"] = cap(config.soft_caps.scores);
      json["final_logit_softcapping"] = cap(config.soft_caps.logits);
      break;
    case Architecture::kGlm4:
      json["attention_bias"] = config.qkv_bias;
      break;
    case Architecture::kMixtral:
      json["num_local_experts"] = config.experts.count;
      json["num_experts_per_tok"] = config.experts.used;
      break;
    case Architecture::kQwen3Moe:
      json["num_experts"] = config.experts.count;
      json["num_experts_per_tok"] = config.experts.used;
      json["moe_intermediate_size"] = config.experts.intermediate_size;
      json["norm_topk_prob"] = config.experts.normalized;
      json["decoder_sparse_step"] = 1;
      json["mlp_only_layers"] = ordered_json::array();
      break;
    case Architecture::kGptOss:
      json["attention_bias"] = config.qkv_bias;
      json["num_local_experts"] = config.experts.count;
      json["num_experts_per_tok"] = config.experts.used;
      json["swiglu_limit"] = shortest(config.activation_limit);
      json["quantization_config"] = {
          {"quant_method", "mxfp4"},
          {"modules_to_not_convert",
           {"model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"}}};
      break;
    case Architecture::kStarcoder2:
      json["use_bias"] = config.qkv_bias;
      break;
    default:
      break;
  }
}

/// A GPT-2 has names of its own for its sizes.
void add_gpt2_sizes(const ModelConfig& config, ordered_json& json) {
  json["n_embd"] = config.hidden_size;
  json["n_inner"] = config.intermediate_size;
  json["n_layer"] = config.layers;
  json["n_head"] = config.heads;
  json["n_positions"] = config.context;
  json["activation_function"] = "gelu_new";
  json["layer_norm_epsilon"] = shortest(config.rms_norm_epsilon);
}

void add_sizes(const ModelConfig& config, ordered_json& json) {
  json["hidden_size"] = config.hidden_size;
  const bool experts_alone = config.architecture == Architecture::kGptOss;
  json["intermediate_size"] = experts_alone ? config.experts.intermediate_size : config.intermediate_size;
  json["num_hidden_layers"] = config.layers;
  json["num_attention_heads"] = config.heads;
  json["num_key_value_heads"] = config.kv_heads;
  json["head_dim"] = config.head_dim;
  json["hidden_act"] = config.layer_norm ? "gelu_pytorch_tanh" : "silu";
  json[config.layer_norm ? "norm_epsilon" : "rms_norm_eps"] = shortest(config.rms_norm_epsilon);
}

}  // namespace

std::string folder_config(ModelConfig config, Architecture architecture, const char* type) {
  const HfFamily& family = hf_family(architecture);
  ordered_json json = {{"architectures", {family.class_name}}, {"model_type", family.type}};
  json["vocab_size"] = config.vocab_size;
  config.architecture = architecture;
  if (architecture == Architecture::kGpt2) {
    add_gpt2_sizes(config, json);
  } else {
    add_sizes(config, json);
  }
  json["tie_word_embeddings"] = config.tied_embeddings;
  if (!config.learned_positions) add_positions(config, json);
  add_windows(config, json);
  add_family_fields(config, json);
  json["bos_token_id"] = config.bos_token ? ordered_json(*config.bos_token) : ordered_json(nullptr);
  if (config.eos_tokens.size() == 1) {
    json["eos_token_id"] = config.eos_tokens.front();
  } else {
    json["eos_token_id"] = config.eos_tokens;
  }
  json["torch_dtype"] = type;
  return json.dump(2) + "\n";
}

}  // namespace verbatim
