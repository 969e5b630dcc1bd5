#include "checkpoint/model_config.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace verbatim {

namespace {

void check_range(const char* what, int64_t value, int64_t lowest, int64_t highest, const std::string& where) {
  if (value < lowest || value > highest) {
    bad_input("{}: the {} is {}; it should be between {} and {}", where, what, value, lowest, highest);
  }
}

void check_positive(const char* what, float value, const std::string& where) {
  if (!std::isfinite(value) || value <= 0.0f) {
    bad_input("{}: the {} is {}; it should be positive and finite", where, what, value);
  }
}

void check_yarn(const ModelConfig& config, const std::string& where) {
  const YarnScaling& yarn = config.rope_scaling.yarn;
  check_positive("attention factor of the RoPE scaling", yarn.attention_factor, where);
  check_positive("beta_fast of the RoPE scaling", yarn.beta_fast, where);
  check_positive("beta_slow of the RoPE scaling", yarn.beta_slow, where);
  if (yarn.beta_fast < yarn.beta_slow) {
    bad_input("{}: the RoPE scaling's beta_fast {} should not be below its beta_slow {}", where,
              yarn.beta_fast, yarn.beta_slow);
  }
  if (config.rope_theta <= 1.0f) {
    bad_input("{}: the RoPE theta is {}; YaRN scaling needs it above 1", where, config.rope_theta);
  }
}

/// Checks divisors of the frequencies: none, or one for each rotated pair.
void check_factors(const std::vector<float>& factors, const ModelConfig& config, const std::string& where) {
  if (!factors.empty() && factors.size() != static_cast<size_t>(rotated_elements(config)) / 2) {
    bad_input(
        "{}: there are {} RoPE frequency factors for {} rotated elements of a head; it should be half as "
        "many",
        where, factors.size(), rotated_elements(config));
  }
  for (const float factor : factors) check_positive("RoPE frequency factor", factor, where);
}

void check_rope(const ModelConfig& config, const std::string& where) {
  check_positive("RoPE theta", config.rope_theta, where);
  const RopeScaling& scaling = config.rope_scaling;
  check_positive("RoPE scaling factor", scaling.factor, where);
  if (scaling.kind == RopeScaling::Kind::kLlama3) {
    check_positive("RoPE low frequency factor", scaling.low_frequency_factor, where);
    check_positive("RoPE high frequency factor", scaling.high_frequency_factor, where);
    if (scaling.high_frequency_factor <= scaling.low_frequency_factor) {
      bad_input("{}: the RoPE high frequency factor {} should be above the low one {}", where,
                scaling.high_frequency_factor, scaling.low_frequency_factor);
    }
  }
  using Kind = RopeScaling::Kind;
  if (scaling.kind == Kind::kLlama3 || scaling.kind == Kind::kDynamic || scaling.kind == Kind::kYarn ||
      scaling.kind == Kind::kLongRope) {
    check_range("original context of the RoPE scaling", scaling.original_context, 1, 1 << 24, where);
  }
  if (scaling.kind == Kind::kDynamic && rotated_elements(config) < 4) {
    bad_input("{}: dynamic RoPE scaling needs at least 4 rotated elements of a head, not {}", where,
              rotated_elements(config));
  }
  if (scaling.kind == Kind::kYarn) check_yarn(config, where);
  if (scaling.kind == Kind::kLongRope) {
    check_positive("attention factor of the RoPE scaling", scaling.long_rope.attention_factor, where);
    if (scaling.long_rope.short_factors.empty() || scaling.long_rope.long_factors.empty()) {
      bad_input("{}: the short or the long factors of the RoPE scaling are missing", where);
    }
  }
  check_factors(scaling.long_rope.short_factors, config, where);
  check_factors(scaling.long_rope.long_factors, config, where);
  check_factors(config.rope_frequency_factors, config, where);
}

void check_layers(const char* what, const std::vector<int32_t>& layers, const ModelConfig& config,
                  const std::string& where) {
  int32_t least = 0;
  for (const int32_t layer : layers) {
    if (layer < least || layer >= config.layers) {
      bad_input("{}: the {} should be ascending numbers below {}, but {} is among them", where, what,
                config.layers, layer);
    }
    least = layer + 1;
  }
}

/// Checks the experts. Their number is bounded over all layers together, because each is a matrix with a
/// name.
void check_experts(const ModelConfig& config, const std::string& where) {
  const Experts& experts = config.experts;
  if (experts.count == 0) {
    if (experts != Experts()) bad_input("{}: there are no experts, but settings of them", where);
    if (config.dense_layers.empty()) return;
    bad_input("{}: there are no experts that some layers could be without", where);
  }
  constexpr int32_t kMostExperts = 1 << 16;
  check_range("number of experts", experts.count, 1, kMostExperts / config.layers, where);
  check_range("number of experts that a row goes through", experts.used, 1, experts.count, where);
  check_range("intermediate size of experts", experts.intermediate_size, 1, 1 << 20, where);
  check_layers("layers without experts", config.dense_layers, config, where);
  if (std::ssize(config.dense_layers) == config.layers) {
    bad_input("{}: every layer is one without experts", where);
  }
  if (config.quantization == QuantizationScheme::kAtom ||
      config.quantization == QuantizationScheme::kQuarot) {
    bad_input("{}: the scheme {} does not know mixtures of experts", where, scheme_name(config.quantization));
  }
}

/// Checks what goes with LayerNorms, a feed-forward part without a gate and learned positions.
void check_plain_parts(const ModelConfig& config, const std::string& where) {
  if (config.layer_norm && (config.block_norms != BlockNorms::kBefore ||
                            config.head_norm != HeadNorm::kNone || config.norms_less_one)) {
    bad_input("{}: LayerNorms are supported before the parts of a layer alone", where);
  }
  if (config.layer_norm && config.quantization == QuantizationScheme::kQuarot) {
    bad_input("{}: the scheme quarot does not know LayerNorms", where);
  }
  if (config.plain_mlp && (config.experts.count > 0 || config.fused_gate_up)) {
    bad_input("{}: a feed-forward part without a gate has neither experts nor a matrix of gate and up",
              where);
  }
  const bool plain = config.activation == Activation::kGeluTanh || config.activation == Activation::kRelu;
  const bool gated = config.activation != Activation::kRelu;
  if (config.plain_mlp ? !plain : !gated) {
    bad_input("{}: the activation {} {} a gate is not supported", where, activation_name(config.activation),
              config.plain_mlp ? "without" : "on");
  }
  // Each position is a vector with a name.
  if (config.learned_positions) check_range("number of learned positions", config.context, 1, 1 << 17, where);
}

}  // namespace

bool has_experts(const ModelConfig& config, int64_t layer) {
  const std::vector<int32_t>& dense = config.dense_layers;
  return config.experts.count > 0 &&
         !std::binary_search(dense.begin(), dense.end(), static_cast<int32_t>(layer));
}

void validate_layers(int32_t layers, const std::string& where) {
  check_range("number of layers", layers, 1, 1024, where);
}

void set_learned_positions(ModelConfig& config, const std::string& where) {
  validate_layers(config.layers, where);
  config.learned_positions = true;
  config.unrotated_layers.resize(static_cast<size_t>(config.layers));
  std::iota(config.unrotated_layers.begin(), config.unrotated_layers.end(), 0);
}

void validate(const ModelConfig& config, const std::string& where) {
  check_range("hidden size", config.hidden_size, 1, 1 << 16, where);
  check_range("intermediate size", config.intermediate_size, 1, 1 << 20, where);
  validate_layers(config.layers, where);
  check_range("number of heads", config.heads, 1, 1024, where);
  check_range("number of key-value heads", config.kv_heads, 1, config.heads, where);
  check_range("head size", config.head_dim, 2, 1024, where);
  check_range("vocabulary size", config.vocab_size, 1, 1 << 22, where);
  check_range("context", config.context, 1, 1 << 24, where);
  check_range("sliding window", config.sliding_window, 0, 1 << 24, where);
  check_layers("layers without a window", config.windowless_layers, config, where);
  check_layers("layers without rotation", config.unrotated_layers, config, where);
  if (config.sliding_window == 0 && !config.windowless_layers.empty()) {
    bad_input("{}: there is no window that some layers could be without", where);
  }
  if (config.heads % config.kv_heads != 0) {
    bad_input("{}: {} heads cannot share {} key-value heads evenly", where, config.heads, config.kv_heads);
  }
  if (config.head_dim % 2 != 0) {
    bad_input("{}: the head size {} is odd, but RoPE rotates pairs", where, config.head_dim);
  }
  check_range("number of rotated elements of a head", config.rotary_dim, 0, config.head_dim, where);
  if (config.rotary_dim % 2 != 0) {
    bad_input("{}: the number {} of rotated elements of a head is odd, but RoPE rotates pairs", where,
              config.rotary_dim);
  }
  check_positive("epsilon of the norms", config.rms_norm_epsilon, where);
  check_experts(config, where);
  if (config.activation == Activation::kClampedSilu) {
    check_positive("limit of the activation", config.activation_limit, where);
  }
  check_plain_parts(config, where);
  check_rope(config, where);
  check_positive("factor on the embedding", config.scales.embedding, where);
  check_positive("factor on what layers add", config.scales.residual, where);
  if (config.scales.attention != 0.0f) check_positive("factor on the scores", config.scales.attention, where);
  check_positive("factor on the logits", config.scales.logits, where);
  if (config.soft_caps.scores != 0.0f) check_positive("soft cap of scores", config.soft_caps.scores, where);
  if (config.soft_caps.logits != 0.0f) check_positive("soft cap of logits", config.soft_caps.logits, where);
  if (config.window_rope_theta != 0.0f) {
    check_positive("RoPE theta of layers with a window", config.window_rope_theta, where);
  }
  if (config.bos_token) check_range("BOS token", *config.bos_token, 0, config.vocab_size - 1, where);
  for (const int32_t token : config.eos_tokens) {
    check_range("EOS token", token, 0, config.vocab_size - 1, where);
  }
}

std::string architecture_name(Architecture architecture) {
  switch (architecture) {
    case Architecture::kLlama:
      return "llama";
    case Architecture::kMistral:
      return "mistral";
    case Architecture::kQwen2:
      return "qwen2";
    case Architecture::kQwen3:
      return "qwen3";
    case Architecture::kSmolLm3:
      return "smollm3";
    case Architecture::kGranite:
      return "granite";
    case Architecture::kOlmo2:
      return "olmo2";
    case Architecture::kPhi3:
      return "phi3";
    case Architecture::kGemma2:
      return "gemma2";
    case Architecture::kGemma3:
      return "gemma3_text";
    case Architecture::kGlm4:
      return "glm4";
    case Architecture::kMixtral:
      return "mixtral";
    case Architecture::kQwen3Moe:
      return "qwen3_moe";
    case Architecture::kGptOss:
      return "gpt_oss";
    case Architecture::kGpt2:
      return "gpt2";
    case Architecture::kStarcoder2:
      return "starcoder2";
    case Architecture::kOpt:
      return "opt";
  }
  return "unknown";
}

std::string_view head_norm_name(HeadNorm norm) {
  switch (norm) {
    case HeadNorm::kNone:
      return "none";
    case HeadNorm::kPerHead:
      return "per head";
    case HeadNorm::kWhole:
      return "whole";
  }
  return "unknown";
}

std::string_view block_norms_name(BlockNorms norms) {
  switch (norms) {
    case BlockNorms::kBefore:
      return "before";
    case BlockNorms::kAfter:
      return "after";
    case BlockNorms::kBoth:
      return "both";
  }
  return "unknown";
}

std::string_view activation_name(Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return "silu";
    case Activation::kGeluTanh:
      return "gelu_tanh";
    case Activation::kClampedSilu:
      return "clamped_silu";
    case Activation::kRelu:
      return "relu";
  }
  return "unknown";
}

std::string_view origin_name(Origin origin) {
  switch (origin) {
    case Origin::kTrained:
      return "trained";
    case Origin::kInflated:
      return "inflated";
    case Origin::kRandom:
      return "random";
  }
  return "unknown";
}

std::string_view scheme_name(QuantizationScheme scheme) {
  switch (scheme) {
    case QuantizationScheme::kNone:
      return "none";
    case QuantizationScheme::kRtn:
      return "rtn";
    case QuantizationScheme::kAwq:
      return "awq";
    case QuantizationScheme::kGptq:
      return "gptq";
    case QuantizationScheme::kAtom:
      return "atom";
    case QuantizationScheme::kQuarot:
      return "quarot";
  }
  return "unknown";
}

std::optional<QuantizationScheme> parse_scheme(std::string_view name) {
  for (const QuantizationScheme scheme : kQuantizationSchemes) {
    if (scheme_name(scheme) == name) return scheme;
  }
  return std::nullopt;
}

}  // namespace verbatim
