#include "checkpoint/gguf_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/block_norms.h"
#include "checkpoint/gguf_experts.h"
#include "checkpoint/gguf_fields.h"
#include "checkpoint/gguf_layer_norm.h"
#include "checkpoint/hf_layer_norm.h"
#include "checkpoint/layout.h"
#include "checkpoint/rope_scaling.h"
#include "checkpoint/tensor_names.h"

namespace verbatim {

namespace {

struct NamePair {
  std::string_view gguf;
  std::string_view hugging_face;
};

constexpr NamePair kLayerNames[] = {
    {"attn_q", "self_attn.q_proj"}, {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"ffn_gate", "mlp.gate_proj"},  {"attn_q_norm", "self_attn.q_norm"}, {"attn_k_norm", "self_attn.k_norm"},
};

}  // namespace

// A name without a counterpart is refused later if it belongs to a layer.
std::string hugging_face_name(const std::string& name, const ModelConfig& config) {
  const TensorNames names = tensor_names(config);
  const NamePair model_names[] = {{"token_embd", names.embedding},
                                  {"position_embd", names.positions},
                                  {"output_norm", names.final_norm},
                                  {"output", "lm_head"}};
  const size_t end = name.rfind('.');  // .weight or .bias
  for (const NamePair& pair : model_names) {
    if (end == std::string::npos || name.compare(0, end, pair.gguf) != 0) continue;
    if (!pair.hugging_face.empty()) return std::string(pair.hugging_face) + name.substr(end);
  }
  constexpr std::string_view kLayerPrefix = "blk.";
  if (!name.starts_with(kLayerPrefix)) return name;
  const size_t number_end = name.find('.', kLayerPrefix.size());
  if (number_end == std::string::npos) return name;
  const std::string number = name.substr(kLayerPrefix.size(), number_end - kLayerPrefix.size());
  const std::string layer = fmt::format("{}{}.", names.layers, number);
  const std::string rest = name.substr(number_end + 1);
  const size_t kind = rest.rfind('.');  // .weight or .bias
  const BlockNormNames norms = block_norm_names(config);
  const bool gpt_oss = config.architecture == Architecture::kGptOss;
  if (gpt_oss && rest == "attn_sinks.weight") return layer + "self_attn.sinks";
  const NamePair norm_names[] = {{"attn_norm", norms.before_attention},
                                 {"post_attention_norm", gpt_oss ? norms.before_mlp : norms.after_attention},
                                 {"ffn_norm", gpt_oss ? std::string_view() : norms.before_mlp},
                                 {"post_ffw_norm", norms.after_mlp}};
  if (const std::optional<std::string> expert = expert_tensor_name(rest, config)) {
    return layer + *expert;
  }
  if (config.fused_gate_up && rest == "ffn_up.weight") {
    return layer + "mlp.gate_up_proj.weight";
  }
  // Those that have other names in some families.
  const std::tuple<std::string_view, std::string_view, std::string_view> matrices[] = {
      {"attn_qkv", names.attention, names.qkv},
      {"attn_output", names.attention, names.output},
      {"ffn_up", names.mlp, names.up},
      {"ffn_down", names.mlp, names.down}};
  for (const auto& [gguf, part, matrix] : matrices) {
    if (kind == std::string::npos || rest.compare(0, kind, gguf) != 0) continue;
    return fmt::format("{}{}{}{}", layer, part, matrix, rest.substr(kind));
  }
  for (const std::span<const NamePair> pairs :
       {std::span<const NamePair>(kLayerNames), std::span<const NamePair>(norm_names)}) {
    for (const NamePair& pair : pairs) {
      if (kind == std::string::npos || rest.compare(0, kind, pair.gguf) != 0) continue;
      if (pair.hugging_face.empty()) continue;
      return fmt::format("{}{}{}", layer, pair.hugging_face, rest.substr(kind));
    }
  }
  return layer + rest;
}

std::string gguf_architecture_name(Architecture architecture) {
  if (architecture == Architecture::kMistral || architecture == Architecture::kMixtral) return "llama";
  if (architecture == Architecture::kGemma3) return "gemma3";
  if (architecture == Architecture::kQwen3Moe) return "qwen3moe";
  if (architecture == Architecture::kGptOss) return "gpt-oss";
  return architecture_name(architecture);
}

bool gguf_interleaves(Architecture architecture) {
  using enum Architecture;
  return architecture == kLlama || architecture == kMistral || architecture == kMixtral ||
         architecture == kSmolLm3 || architecture == kGranite || architecture == kGlm4;
}

namespace {

Architecture parse_architecture(const GgufFile& gguf, const std::string& where) {
  const std::optional<std::string> name = gguf_string(gguf, "general.architecture");
  if (!name) bad_input("{}: the metadata general.architecture is missing", where);
  // A Mistral is a llama here, and so is a Mixtral.
  std::string known;
  for (const Architecture architecture : kArchitectures) {
    if (architecture == Architecture::kMistral || architecture == Architecture::kMixtral) continue;
    if (architecture == Architecture::kOpt) continue;  // is in no GGUF file
    if (*name == gguf_architecture_name(architecture)) return architecture;
    known += (known.empty() ? "" : ", ") + gguf_architecture_name(architecture);
  }
  bad_input("{}: the architecture {} is not supported; these are: {} (Mistral and Mixtral are a llama)",
            where, printable(*name), known);
}

/// Reads the YaRN scaling as llama.cpp does for these architectures, which always rounds the bounds of the
/// ramp.
void parse_yarn(const GgufFields& fields, RopeScaling& scaling) {
  const YarnScaling usual;
  if (fields.number("rope.scaling.yarn_log_multiplier").value_or(0.0f) != 0.0f) {
    bad_input("{}: YaRN scaling with a yarn_log_multiplier is not supported", fields.where());
  }
  if (fields.number("rope.scaling.yarn_ext_factor").value_or(1.0f) != 1.0f) {
    bad_input("{}: YaRN scaling with a yarn_ext_factor other than 1 is not supported", fields.where());
  }
  scaling.yarn.attention_factor =
      yarn_attention_factor(scaling.factor) * fields.number("rope.scaling.attn_factor").value_or(1.0f);
  scaling.yarn.beta_fast = fields.number("rope.scaling.yarn_beta_fast").value_or(usual.beta_fast);
  scaling.yarn.beta_slow = fields.number("rope.scaling.yarn_beta_slow").value_or(usual.beta_slow);
}

/// Reads the scaling of positions, and sets the context to the scaled one if it is to be extended.
RopeScaling parse_rope_scaling(const GgufFields& fields, bool extend, int32_t& context) {
  RopeScaling scaling;
  const std::optional<std::string> kind = fields.text("rope.scaling.type");
  const std::optional<float> new_factor = fields.number("rope.scaling.factor");
  const std::optional<float> old_factor = fields.number("rope.scale_linear");
  if (kind && *kind == "none") return scaling;
  const bool yarn = kind && *kind == "yarn";
  if (kind && *kind != "linear" && !yarn) {
    bad_input("{}: RoPE scaling of type {} is not supported; none, linear and yarn are", fields.where(),
              printable(*kind));
  }
  const float factor = new_factor.value_or(old_factor.value_or(0.0f));
  if (factor == 0.0f || factor == 1.0f) return scaling;  // converters write 0 for "not scaled"
  scaling.kind = yarn ? RopeScaling::Kind::kYarn : RopeScaling::Kind::kLinear;
  scaling.factor = factor;
  const std::optional<int32_t> original = fields.integer("rope.scaling.original_context_length");
  if (yarn) {
    scaling.original_context = original.value_or(context);
    parse_yarn(fields, scaling);
  }
  if (extend) context = scaled_context(context, original, factor);
  return scaling;
}

/// The number of elements of a head that are rotated; 0 for all.
int32_t rotary_elements(const GgufFields& fields, const ModelConfig& config) {
  const int32_t rotated = fields.integer("rope.dimension_count").value_or(config.head_dim);
  if (rotated == config.head_dim) return 0;
  const bool partly =
      config.architecture == Architecture::kPhi3 || config.architecture == Architecture::kGlm4;
  if (!partly || rotated < 2) {
    bad_input("{}: RoPE over {} of the {} elements of a head is not supported", fields.where(), rotated,
              config.head_dim);
  }
  return rotated;
}

int32_t head_size(const GgufFields& fields, const ModelConfig& config) {
  std::optional<int32_t> key = fields.integer("attention.key_length");
  if (!key) {
    if (config.heads < 1 || config.hidden_size % config.heads != 0) {
      bad_input("{}: the size of a head is missing, and {} is no multiple of {} heads", fields.where(),
                config.hidden_size, config.heads);
    }
    key = config.hidden_size / config.heads;
  }
  if (fields.integer("attention.value_length").value_or(*key) != *key) {
    bad_input("{}: keys and values of different lengths are not supported", fields.where());
  }
  return *key;
}

int32_t vocabulary_size(const GgufFile& gguf, const std::string& where) {
  const auto embedding = gguf.tensors.find("token_embd.weight");
  if (embedding == gguf.tensors.end()) bad_input("{}: tensor token_embd.weight is missing", where);
  const int64_t rows = embedding->second.rows();
  if (rows > std::numeric_limits<int32_t>::max()) bad_input("{}: token_embd.weight has {} rows", where, rows);
  return static_cast<int32_t>(rows);
}

void parse_special_tokens(const GgufFields& fields, ModelConfig& config) {
  const auto possible = [&config](const std::optional<int32_t>& id) {
    return id && *id >= 0 && *id < config.vocab_size;
  };
  const std::optional<int32_t> bos = fields.any_integer("tokenizer.ggml.bos_token_id");
  if (possible(bos)) config.bos_token = bos;
  for (const char* key : kEndTokens) {
    const std::optional<int32_t> id = fields.any_integer(key);
    if (!possible(id)) continue;
    std::vector<int32_t>& eos = config.eos_tokens;
    if (std::find(eos.begin(), eos.end(), *id) == eos.end()) eos.push_back(*id);
  }
}

std::vector<float> read_rope_factors(const GgufFile& gguf, const char* name, const ModelConfig& config,
                                     const std::string& where) {
  const auto found = gguf.tensors.find(name);
  if (found == gguf.tensors.end()) return {};
  const TensorView& tensor = found->second;
  if (tensor.shape.size() != 1 || tensor.columns() != rotated_elements(config) / 2) {
    bad_input("{}: tensor {} has the shape {} but should have [{}]", where, name, shape_text(tensor.shape),
              rotated_elements(config) / 2);
  }
  std::vector<float> factors(static_cast<size_t>(tensor.columns()));
  tensor.read_row(0, factors);
  return factors;
}

/// Reads the scaling of Llama 3 where the file states it beside its divisors, which it must then have.
void parse_llama3_scaling(const GgufFile& gguf, const std::string& where, ModelConfig& config) {
  const GgufFields fields(gguf, kLlama3Scaling, where);
  const std::optional<float> factor = fields.number("factor");
  if (!factor) return fields.refuse_others({});
  if (config.rope_scaling.kind != RopeScaling::Kind::kNone) {
    bad_input("{}: RoPE scaling of two kinds is not supported", where);
  }
  RopeScaling& scaling = config.rope_scaling;
  scaling.kind = RopeScaling::Kind::kLlama3;
  scaling.factor = *factor;
  scaling.low_frequency_factor = fields.number("low_freq_factor").value_or(scaling.low_frequency_factor);
  scaling.high_frequency_factor = fields.number("high_freq_factor").value_or(scaling.high_frequency_factor);
  scaling.original_context = fields.required_integer("original_context_length");
  fields.refuse_others({});
  validate(config, where);
  if (config.rope_frequency_factors != llama3_divisors(config)) {
    bad_input("{}: tensor {} does not hold the divisors of the scaling that {}* states", where, kRopeFactors,
              kLlama3Scaling);
  }
  config.rope_frequency_factors.clear();
}

/// Reads the LongRoPE scaling of a Phi-3, which has no type: the factors are tensors.
void parse_long_rope(const GgufFile& gguf, const GgufFields& fields, ModelConfig& config) {
  LongRope factors = {.short_factors = read_rope_factors(gguf, kShortFactors, config, fields.where()),
                      .long_factors = read_rope_factors(gguf, kLongFactors, config, fields.where())};
  if (factors.short_factors.empty() && factors.long_factors.empty()) return;
  if (config.rope_scaling.kind != RopeScaling::Kind::kNone) {
    bad_input("{}: RoPE scaling of two kinds is not supported", fields.where());
  }
  factors.attention_factor = fields.number("rope.scaling.attn_factor").value_or(1.0f);
  config.rope_scaling.kind = RopeScaling::Kind::kLongRope;
  config.rope_scaling.original_context =
      fields.integer("rope.scaling.original_context_length").value_or(config.context);
  config.rope_scaling.factor = static_cast<float>(config.context) /
                               static_cast<float>(std::max(config.rope_scaling.original_context, 1));
  config.rope_scaling.long_rope = std::move(factors);
}

/// Reads what sets a Gemma 2 or 3 apart as llama.cpp does.
void parse_gemma(const GgufFields& fields, ModelConfig& config) {
  const bool third = config.architecture == Architecture::kGemma3;
  config.block_norms = BlockNorms::kBoth;
  config.activation = Activation::kGeluTanh;
  if (third) {
    config.head_norm = HeadNorm::kPerHead;
    config.window_rope_theta = fields.number("rope.freq_base_swa").value_or(1e4f);
  }
  if (!third) config.soft_caps.scores = fields.number("attn_logit_softcapping").value_or(50.0f);
  config.soft_caps.logits = fields.number("final_logit_softcapping").value_or(third ? 0.0f : 30.0f);
  // Files do not state the factor on scores. The largest models, known by their layers, have another one.
  const bool largest = config.layers == (third ? 62 : 46);
  const int32_t size = largest ? config.hidden_size / std::max(config.heads, 1) : config.head_dim;
  config.scales = {.embedding = std::sqrt(static_cast<float>(config.hidden_size)),
                   .attention = 1.0f / std::sqrt(static_cast<float>(size))};
  const std::optional<int32_t> window = fields.integer("attention.sliding_window");
  if (!window && third)
    bad_input("{}: the metadata gemma3.attention.sliding_window is missing", fields.where());
  config.sliding_window = window.value_or(4096);
  const int32_t pattern = fields.integer("attention.sliding_window_pattern").value_or(third ? 6 : 2);
  if (pattern < 1) bad_input("{}: attention.sliding_window_pattern is {}", fields.where(), pattern);
  for (int32_t layer = pattern - 1; layer < config.layers && config.sliding_window > 0; layer += pattern) {
    config.windowless_layers.push_back(layer);
  }
  if (std::ssize(config.windowless_layers) == config.layers) {
    config.windowless_layers.clear();
    config.sliding_window = 0;
  }
}

/// Reads the four factors of a Granite as llama.cpp does: each that is absent or 0 has no effect.
Scales parse_granite_scales(const GgufFields& fields) {
  const auto factor = [&fields](const char* key, float usual) {
    const float value = fields.number(key).value_or(0.0f);
    return value == 0.0f ? usual : value;
  };
  return {.embedding = factor("embedding_scale", 1.0f),
          .residual = factor("residual_scale", 1.0f),
          .attention = factor("attention.scale", 0.0f),
          .logits = 1.0f / factor("logit_scale", 1.0f)};
}

/// Reads what sets a gpt-oss apart as llama.cpp does. The bounds of the ramp of its positions are not
/// rounded: files do not say so, but its makers did not.
void parse_gpt_oss(const GgufFields& fields, ModelConfig& config) {
  config.output_bias = true;
  config.head_sinks = true;
  config.activation = Activation::kClampedSilu;
  config.activation_limit = 7.0f;
  config.rope_scaling.yarn.truncate = config.rope_scaling.kind != RopeScaling::Kind::kYarn;
  config.sliding_window = fields.required_integer("attention.sliding_window");
  const int32_t pattern = fields.integer("attention.sliding_window_pattern").value_or(2);
  if (pattern < 1) bad_input("{}: attention.sliding_window_pattern is {}", fields.where(), pattern);
  for (int32_t layer = pattern - 1; layer < config.layers && config.sliding_window > 0; layer += pattern) {
    config.windowless_layers.push_back(layer);
  }
  if (std::ssize(config.windowless_layers) == config.layers) {
    config.windowless_layers.clear();
    config.sliding_window = 0;
  }
}

/// Reads what a model has of experts as llama.cpp does, which divides the weights of the experts that a row
/// goes through by their sum in all these families.
void parse_experts(const GgufFields& fields, ModelConfig& config) {
  const int32_t count = fields.integer("expert_count").value_or(0);
  const bool qwen3 = config.architecture == Architecture::kQwen3Moe;
  const bool gpt_oss = config.architecture == Architecture::kGptOss;
  if (count == 0 && !qwen3 && !gpt_oss) return;
  if (config.architecture == Architecture::kLlama) config.architecture = Architecture::kMixtral;
  if (config.architecture != Architecture::kMixtral && !qwen3 && !gpt_oss) {
    bad_input("{}: experts in a {} model are not supported", fields.where(),
              architecture_name(config.architecture));
  }
  if (qwen3) config.head_norm = HeadNorm::kPerHead;
  config.experts.count = count;
  config.experts.used = fields.required_integer("expert_used_count");
  const std::optional<int32_t> size = fields.integer("expert_feed_forward_length");
  if (!size && (qwen3 || gpt_oss)) fields.required_integer("expert_feed_forward_length");
  config.experts.biases = gpt_oss;
  config.experts.intermediate_size = size.value_or(config.intermediate_size);
  if (count < 1) bad_input("{}: the number of experts is {}", fields.where(), count);
}

ModelConfig parse_config(const GgufFile& gguf, const std::string& where) {
  ModelConfig config;
  config.architecture = parse_architecture(gguf, where);
  const GgufFields fields(gguf, gguf_architecture_name(config.architecture) + ".", where);
  config.hidden_size = fields.required_integer("embedding_length");
  config.intermediate_size = fields.required_integer("feed_forward_length");
  config.layers = fields.required_integer("block_count");
  validate_layers(config.layers, where);
  config.heads = fields.required_integer("attention.head_count");
  config.kv_heads = fields.integer("attention.head_count_kv").value_or(config.heads);
  config.head_dim = head_size(fields, config);
  config.vocab_size = vocabulary_size(gguf, where);
  config.context = fields.required_integer("context_length");
  const bool smollm3 = config.architecture == Architecture::kSmolLm3;
  const bool granite = config.architecture == Architecture::kGranite;
  const bool olmo2 = config.architecture == Architecture::kOlmo2;
  const bool gemma =
      config.architecture == Architecture::kGemma2 || config.architecture == Architecture::kGemma3;
  const bool glm4 = config.architecture == Architecture::kGlm4;
  config.rope_interleaved = gguf_interleaves(config.architecture);
  parse_experts(fields, config);
  const bool qwen3_moe = config.architecture == Architecture::kQwen3Moe;
  if (gemma) parse_gemma(fields, config);
  const bool gpt_oss = config.architecture == Architecture::kGptOss;
  const bool gpt2 = config.architecture == Architecture::kGpt2;
  if (!smollm3 && !granite && !olmo2 && !gemma && !glm4 && !qwen3_moe && !gpt_oss && !gpt2) {
    config.sliding_window = fields.integer("attention.sliding_window").value_or(0);
  }
  const bool layer_norm = is_layer_norm_family(config.architecture);
  const char* const epsilon_name =
      layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
  const std::optional<float> epsilon = fields.number(epsilon_name);
  if (!epsilon) bad_input("{}: the metadata {} is missing", where, epsilon_name);
  config.rms_norm_epsilon = *epsilon;
  config.rope_theta = fields.number("rope.freq_base").value_or(config.rope_theta);
  config.rope_scaling =
      parse_rope_scaling(fields, config.architecture != Architecture::kGemma3, config.context);
  if (smollm3) {
    for (int32_t layer = 3; layer < config.layers; layer += 4) config.unrotated_layers.push_back(layer);
  }
  if (gpt_oss) parse_gpt_oss(fields, config);
  if (layer_norm) parse_gguf_layer_norm(gguf, where, config);
  config.tied_embeddings = !gguf.tensors.contains("output.weight");
  config.qkv_bias = config.qkv_bias || gguf.tensors.contains("blk.0.attn_q.bias") ||
                    config.architecture == Architecture::kQwen2 || gpt_oss;
  if (granite) {
    config.scales = parse_granite_scales(fields);
    // For Granite, llama.cpp takes this field for a switch of the rotation.
    if (!fields.boolean("rope.scaling.finetuned").value_or(true)) {
      for (int32_t layer = 0; layer < config.layers; ++layer) config.unrotated_layers.push_back(layer);
    }
  }
  if (config.architecture == Architecture::kQwen3) config.head_norm = HeadNorm::kPerHead;
  if (olmo2) {
    config.head_norm = HeadNorm::kWhole;
    config.block_norms = BlockNorms::kAfter;
  }
  if (glm4) {
    config.block_norms = BlockNorms::kBoth;
    config.fused_gate_up = true;
  }
  parse_special_tokens(fields, config);
  validate(config, where);
  config.rotary_dim = rotary_elements(fields, config);
  if (config.architecture == Architecture::kPhi3) {
    config.fused_qkv = true;
    config.fused_gate_up = true;
    parse_long_rope(gguf, fields, config);
  }
  // Converters add these fields, which change nothing or repeat other fields.
  fields.refuse_others({"vocab_size", "tensor_data_layout", "expert_used_count", "rope.scaling.finetuned",
                        "rope.scaling.original_context_length"});
  config.rope_frequency_factors = read_rope_factors(gguf, kRopeFactors, config, where);
  validate(config, where);
  parse_llama3_scaling(gguf, where, config);
  return config;
}

}  // namespace

Checkpoint gguf_checkpoint(const GgufFile& gguf, const std::filesystem::path& path) {
  const std::string where = path.string();
  if (gguf.tensors.empty()) {
    bad_input("{} holds a vocabulary but no weights; give a GGUF file of a whole model", where);
  }
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.format = "gguf";
  checkpoint.config = parse_config(gguf, where);
  checkpoint.tokenizer = {TokenizerSource::Kind::kGguf, path};
  checkpoint.files = gguf.files;
  for (const auto& entry : gguf.tensors) {
    const bool factors =
        entry.first == kRopeFactors || (checkpoint.config.rope_scaling.kind == RopeScaling::Kind::kLongRope &&
                                        (entry.first == kShortFactors || entry.first == kLongFactors));
    if (factors) continue;
    for (auto& [name, tensor] : split_experts(entry.first, entry.second, checkpoint.config, where)) {
      if (!checkpoint.tensors.emplace(hugging_face_name(name, checkpoint.config), std::move(tensor)).second) {
        bad_input("{}: tensor {} is there under two names", where, printable(entry.first));
      }
    }
  }
  return checkpoint;
}

}  // namespace verbatim
