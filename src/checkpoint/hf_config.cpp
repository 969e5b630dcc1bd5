#include "checkpoint/hf_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/input_file.h"
#include "base/json_fields.h"
#include "base/printable.h"
#include "checkpoint/hf_layer_norm.h"
#include "checkpoint/hf_rope.h"

namespace verbatim {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr size_t kLongestConfig = 16 << 20;
constexpr int kDeepestConfig = 32;

constexpr HfFamily kFamilies[] = {
    {Architecture::kLlama, "llama", "LlamaForCausalLM"},
    {Architecture::kMistral, "mistral", "MistralForCausalLM"},
    {Architecture::kQwen2, "qwen2", "Qwen2ForCausalLM"},
    {Architecture::kQwen3, "qwen3", "Qwen3ForCausalLM"},
    {Architecture::kSmolLm3, "smollm3", "SmolLM3ForCausalLM"},
    {Architecture::kGranite, "granite", "GraniteForCausalLM"},
    {Architecture::kOlmo2, "olmo2", "Olmo2ForCausalLM"},
    {Architecture::kPhi3, "phi3", "Phi3ForCausalLM"},
    {Architecture::kGemma2, "gemma2", "Gemma2ForCausalLM"},
    {Architecture::kGemma3, "gemma3_text", "Gemma3ForCausalLM"},
    {Architecture::kGlm4, "glm4", "Glm4ForCausalLM"},
    {Architecture::kMixtral, "mixtral", "MixtralForCausalLM"},
    {Architecture::kQwen3Moe, "qwen3_moe", "Qwen3MoeForCausalLM"},
    {Architecture::kGptOss, "gpt_oss", "GptOssForCausalLM"},
    {Architecture::kGpt2, "gpt2", "GPT2LMHeadModel"},
    {Architecture::kStarcoder2, "starcoder2", "Starcoder2ForCausalLM"},
    {Architecture::kOpt, "opt", "OPTForCausalLM"},
};

Architecture parse_architecture(const JsonFields& fields) {
  const std::optional<std::string> type = fields.text("model_type");
  std::string name = type.value_or("");
  if (!type) {  // some tools write the class only
    const json* classes = fields.find("architectures");
    if (classes != nullptr && classes->is_array() && !classes->empty() && classes->front().is_string()) {
      name = classes->front().get<std::string>();
    }
  }
  std::vector<std::string_view> known;
  for (const HfFamily& family : kFamilies) {
    if (name == family.type || name == family.class_name) return family.architecture;
    known.push_back(family.type);
  }
  if (name.empty()) {
    bad_input("{}: model_type is missing; it should be one of {}", fields.where(), fmt::join(known, ", "));
  }
  bad_input("{}: the model_type {} is not supported; these are: {}", fields.where(), printable(name),
            fmt::join(known, ", "));
}

bool is_gemma(Architecture architecture) {
  return architecture == Architecture::kGemma2 || architecture == Architecture::kGemma3;
}

/// Refuses experts of a gpt-oss that are quantized in another way than it is made.
void require_mxfp4(const JsonFields& fields) {
  const json* const quantization = fields.find("quantization_config");
  if (quantization == nullptr) return;
  const JsonFields method(*quantization, fields.where(), "quantization_config");
  const std::string name = method.text("quant_method").value_or("");
  if (name != "mxfp4") {
    bad_input("{}: the quant_method {} is not supported; mxfp4 is", fields.where(), printable(name));
  }
}

void refuse_unsupported(const JsonFields& fields, Architecture architecture) {
  const std::string& where = fields.where();
  if (is_gemma(architecture)) {
    // Of these models Transformers ignores hidden_act.
    constexpr const char* kGelu = "gelu_pytorch_tanh";
    const std::string activation = fields.text("hidden_activation").value_or(kGelu);
    if (activation != kGelu) {
      bad_input("{}: hidden_activation {} is not supported; {} is", where, printable(activation), kGelu);
    }
    if (fields.boolean("use_bidirectional_attention").value_or(false)) {
      bad_input("{}: use_bidirectional_attention true is not supported", where);
    }
  } else {
    const std::string activation = fields.text("hidden_act").value_or("silu");
    if (activation != "silu") {
      bad_input("{}: hidden_act {} is not supported; silu is", where, printable(activation));
    }
  }
  // Qwen2 has biases of its own and ignores this field. Phi-3 has none and ignores it, too. That of a GLM-4
  // is about queries, keys and values alone, and a gpt-oss has all of these biases.
  const bool harmless = architecture == Architecture::kQwen2 || architecture == Architecture::kPhi3 ||
                        architecture == Architecture::kGlm4 || architecture == Architecture::kGptOss;
  if (!harmless && fields.boolean("attention_bias").value_or(false)) {
    bad_input("{}: attention_bias true, which adds a bias to the attention's output, is not supported",
              where);
  }
  if (fields.boolean("mlp_bias").value_or(false)) bad_input("{}: mlp_bias true is not supported", where);
  if (architecture == Architecture::kGptOss) return require_mxfp4(fields);
  const json* const quantization = fields.find("quantization_config");
  if (quantization != nullptr) parse_quantization_config(*quantization, where);
}

/// The layers for which `chosen(layer)` holds.
template <typename Chosen>
std::vector<int32_t> layers_where(const ModelConfig& config, Chosen&& chosen) {
  std::vector<int32_t> layers;
  for (int32_t layer = 0; layer < config.layers; ++layer) {
    if (chosen(layer)) layers.push_back(layer);
  }
  return layers;
}

/// Reads the kind of attention of each layer, a list in newer files: whether the layer has a window. Nothing
/// if there is no such list.
std::optional<std::vector<bool>> parse_layer_types(const JsonFields& fields, const ModelConfig& config) {
  const json* const types = fields.find("layer_types");
  if (types == nullptr) return std::nullopt;
  if (!types->is_array() || types->size() != static_cast<size_t>(config.layers)) {
    bad_input("{}: layer_types should be a list with an entry per layer", fields.where());
  }
  std::vector<bool> windows;
  for (const json& type : *types) {
    if (type != "full_attention" && type != "sliding_attention") {
      bad_input("{}: layer_types has {}; full_attention and sliding_attention are supported", fields.where(),
                printable(type.dump()));
    }
    windows.push_back(type == "sliding_attention");
  }
  return windows;
}

/// Sets the window, and the layers without it. `windowed(layer)` says what Transformers assumes of a layer
/// where the file does not list the kinds of its layers.
template <typename Windowed>
void set_windows(const JsonFields& fields, int32_t window, Windowed&& windowed, ModelConfig& config) {
  const std::optional<std::vector<bool>> listed = parse_layer_types(fields, config);
  if (window == 0) return;
  config.windowless_layers = layers_where(config, [&](int32_t layer) {
    return listed ? !(*listed)[static_cast<size_t>(layer)] : !windowed(layer);
  });
  config.sliding_window = window;
  if (std::ssize(config.windowless_layers) < config.layers) return;
  config.windowless_layers.clear();
  config.sliding_window = 0;
}

/// Reads the window in which positions see others. Needs the unrotated layers.
void parse_sliding_window(const JsonFields& fields, ModelConfig& config) {
  const bool stated = fields.has("sliding_window");
  const bool none = config.architecture == Architecture::kSmolLm3 ||
                    config.architecture == Architecture::kPhi3 ||
                    config.architecture == Architecture::kMixtral;
  const bool gpt_oss = config.architecture == Architecture::kGptOss;
  const int32_t usual = none ? 0 : gpt_oss ? 128 : 4096;  // as Transformers assumes
  const int32_t window = stated ? fields.integer("sliding_window").value_or(0) : usual;
  if (stated && window < 0) bad_input("{}: sliding_window is {}", fields.where(), window);
  const bool used = fields.boolean("use_sliding_window").value_or(false);
  switch (config.architecture) {
    case Architecture::kLlama:
    case Architecture::kGranite:
    case Architecture::kOlmo2:
    case Architecture::kGlm4:
    case Architecture::kGpt2:
    case Architecture::kStarcoder2:
    case Architecture::kOpt:
      return;
    case Architecture::kMistral:
    case Architecture::kPhi3:
    case Architecture::kMixtral:
      config.sliding_window = window;
      return;
    case Architecture::kQwen2:
    case Architecture::kQwen3: {
      constexpr int32_t kFirstWindow = 28;  // what Transformers assumes
      const int32_t first = fields.integer("max_window_layers").value_or(kFirstWindow);
      return set_windows(
          fields, used ? window : 0, [first](int32_t layer) { return layer >= first; }, config);
    }
    case Architecture::kQwen3Moe: {
      // Versions of Transformers differ in which layers have the window, unless all have it.
      if (used && window > 0 && fields.integer("max_window_layers").value_or(28) > 0) {
        bad_input(
            "{}: use_sliding_window with a max_window_layers other than 0 is not supported for qwen3_moe",
            fields.where());
      }
      config.sliding_window = used ? window : 0;
      for (const bool windowed : parse_layer_types(fields, config).value_or(std::vector<bool>())) {
        if (windowed == (config.sliding_window > 0)) continue;
        bad_input("{}: layer_types that differ from use_sliding_window are not supported for qwen3_moe",
                  fields.where());
      }
      return;
    }
    case Architecture::kGptOss:
    case Architecture::kGemma2:
      return set_windows(
          fields, window, [](int32_t layer) { return layer % 2 == 0; }, config);
    case Architecture::kGemma3: {
      constexpr int32_t kUsualPattern = 6;  // what Transformers assumes
      const int32_t pattern =
          fields.integer("sliding_window_pattern")
              .value_or(fields.integer("_sliding_window_pattern").value_or(kUsualPattern));
      if (pattern < 1) bad_input("{}: sliding_window_pattern is {}", fields.where(), pattern);
      return set_windows(
          fields, window, [pattern](int32_t layer) { return (layer + 1) % pattern != 0; }, config);
    }
    case Architecture::kSmolLm3: {
      const std::vector<int32_t>& unrotated = config.unrotated_layers;
      return set_windows(
          fields, used ? window : 0,
          [&](int32_t layer) { return std::binary_search(unrotated.begin(), unrotated.end(), layer); },
          config);
    }
  }
}

/// Reads what sets a Gemma 2 or 3 apart, with what Transformers assumes where nothing is stated.
void parse_gemma(const JsonFields& fields, ModelConfig& config) {
  const bool third = config.architecture == Architecture::kGemma3;
  config.block_norms = BlockNorms::kBoth;
  config.norms_less_one = true;
  config.activation = Activation::kGeluTanh;
  if (third) config.head_norm = HeadNorm::kPerHead;
  config.rope_theta = third ? 1e6f : 1e4f;
  if (third) config.window_rope_theta = fields.number("rope_local_base_freq").value_or(1e4f);
  const auto cap = [&fields](const char* key, float usual) {
    return fields.has(key) ? fields.number(key).value_or(0.0f) : usual;
  };
  config.soft_caps = {.scores = cap("attn_logit_softcapping", third ? 0.0f : 50.0f),
                      .logits = cap("final_logit_softcapping", third ? 0.0f : 30.0f)};
  const float scalar = fields.number("query_pre_attn_scalar").value_or(256.0f);
  if (!(scalar > 0.0f)) bad_input("{}: query_pre_attn_scalar is {}", fields.where(), scalar);
  config.scales = {.embedding = std::sqrt(static_cast<float>(config.hidden_size)),
                   .attention = 1.0f / std::sqrt(scalar)};
}

/// Reads what sets a GLM-4 apart, with what Transformers assumes where nothing is stated.
void parse_glm4(const JsonFields& fields, ModelConfig& config) {
  config.kv_heads = fields.integer("num_key_value_heads").value_or(2);
  config.rms_norm_epsilon = fields.number("rms_norm_eps").value_or(1.5625e-7f);
  config.qkv_bias = fields.boolean("attention_bias").value_or(true);
  config.block_norms = BlockNorms::kBoth;
  config.fused_gate_up = true;
}

/// Reads the layers of a Qwen3-MoE that have no experts: those of a list, and all but every so many.
std::vector<int32_t> parse_dense_layers(const JsonFields& fields, const ModelConfig& config) {
  const int32_t step = fields.integer("decoder_sparse_step").value_or(1);
  if (step < 1) bad_input("{}: decoder_sparse_step is {}", fields.where(), step);
  std::vector<int32_t> listed;
  if (const json* const list = fields.find("mlp_only_layers")) {
    if (!list->is_array()) bad_input("{}: mlp_only_layers should be a list of layers", fields.where());
    for (const json& value : *list) {
      const std::optional<int32_t> layer = as_int32(value);
      if (!layer || *layer < 0 || *layer >= config.layers) {
        bad_input("{}: mlp_only_layers has {}, which is no layer of the model", fields.where(),
                  printable(value.dump()));
      }
      listed.push_back(*layer);
    }
  }
  return layers_where(config, [&](int32_t layer) {
    return (layer + 1) % step != 0 || std::find(listed.begin(), listed.end(), layer) != listed.end();
  });
}

/// Refuses experts that are chosen or weighted in another way than by a softmax of the router's scores.
void refuse_unsupported_routing(const JsonFields& fields) {
  const float factor = fields.number("routed_scaling_factor").value_or(1.0f);
  if (factor != 1.0f) {
    bad_input("{}: routed_scaling_factor {} is not supported; 1 is", fields.where(), factor);
  }
  const std::string scores = fields.text("scoring_func").value_or("softmax");
  if (scores != "softmax") {
    bad_input("{}: scoring_func {} is not supported; softmax is", fields.where(), printable(scores));
  }
  const float cap = fields.number("router_logit_softcapping").value_or(0.0f);
  if (cap != 0.0f) {
    bad_input("{}: router_logit_softcapping {} is not supported; 0 is", fields.where(), cap);
  }
  // Experts are chosen among all if every group is used, be it one.
  const int32_t groups = std::max(fields.integer("n_group").value_or(1), 1);
  const int32_t used = std::max(fields.integer("topk_group").value_or(1), 1);
  if (groups != used) {
    bad_input("{}: an n_group of {} with a topk_group of {}, experts chosen by groups, is not supported",
              fields.where(), groups, used);
  }
}

/// Reads what sets a Mixtral or a Qwen3-MoE apart, with what Transformers assumes where nothing is stated.
void parse_experts(const JsonFields& fields, ModelConfig& config) {
  const bool mixtral = config.architecture == Architecture::kMixtral;
  if (!fields.has("num_key_value_heads")) config.kv_heads = mixtral ? 8 : 4;
  config.rms_norm_epsilon = fields.number("rms_norm_eps").value_or(mixtral ? 1e-5f : 1e-6f);
  config.rope_theta = mixtral ? 1e6f : 1e4f;
  if (!mixtral) config.head_norm = HeadNorm::kPerHead;
  for (const char* key : {"shared_expert_intermediate_size", "n_shared_experts", "num_shared_experts"}) {
    if (fields.integer(key).value_or(0) == 0) continue;
    bad_input("{}: {}, experts that every token goes through, are not supported", fields.where(), key);
  }
  refuse_unsupported_routing(fields);
  // Both families have had both names.
  const std::optional<int32_t> local = fields.integer("num_local_experts");
  const std::optional<int32_t> all = fields.integer("num_experts");
  if (local && all && *local != *all) {
    bad_input("{}: num_local_experts is {} where num_experts is {}", fields.where(), *local, *all);
  }
  const int32_t count = (local ? local : all).value_or(mixtral ? 8 : 128);
  if (!mixtral) {
    config.dense_layers = parse_dense_layers(fields, config);
    if (count == 0 || std::ssize(config.dense_layers) == config.layers) return config.dense_layers.clear();
  }
  if (count < 1) bad_input("{}: the number of experts is {}", fields.where(), count);
  config.experts = {.count = count,
                    .used = fields.integer("num_experts_per_tok").value_or(mixtral ? 2 : 8),
                    .intermediate_size = mixtral ? config.intermediate_size
                                                 : fields.integer("moe_intermediate_size").value_or(768),
                    .normalized = mixtral || fields.boolean("norm_topk_prob").value_or(false)};
}

/// Reads what sets a gpt-oss apart, with what Transformers assumes where nothing is stated.
void parse_gpt_oss(const JsonFields& fields, ModelConfig& config) {
  if (!fields.has("num_key_value_heads")) config.kv_heads = 8;
  config.rms_norm_epsilon = fields.number("rms_norm_eps").value_or(1e-5f);
  config.rope_theta = 150000.0f;
  config.qkv_bias = fields.boolean("attention_bias").value_or(true);
  config.output_bias = config.qkv_bias;
  config.head_sinks = true;
  config.activation = Activation::kClampedSilu;
  config.activation_limit = fields.number("swiglu_limit").value_or(7.0f);
  config.fused_gate_up = true;
  if (fields.find("rope_scaling") == nullptr && fields.find("rope_parameters") == nullptr) {
    bad_input("{}: rope_scaling is missing", fields.where());
  }
  const std::optional<int32_t> used = fields.integer("num_experts_per_tok");
  const std::optional<int32_t> old_used = fields.integer("experts_per_token");
  if (used && old_used && *used != *old_used) {
    bad_input("{}: num_experts_per_tok is {} where experts_per_token is {}", fields.where(), *used,
              *old_used);
  }
  config.experts = {.count = fields.integer("num_local_experts").value_or(128),
                    .used = (used ? used : old_used).value_or(4),
                    .intermediate_size = config.intermediate_size,
                    .normalized = true,
                    .biases = true};
  if (config.experts.count < 1) {
    bad_input("{}: the number of experts is {}", fields.where(), config.experts.count);
  }
}

/// Reads the four factors of a Granite, each of which is 1 where it is not stated.
Scales parse_granite_scales(const JsonFields& fields) {
  const auto factor = [&fields](const char* key) {
    const float value = fields.number(key).value_or(1.0f);
    if (!(value > 0.0f)) bad_input("{}: {} is {}; it should be positive", fields.where(), key, value);
    return value;
  };
  return {.embedding = factor("embedding_multiplier"),
          .residual = factor("residual_multiplier"),
          .attention = factor("attention_multiplier"),
          .logits = 1.0f / factor("logits_scaling")};
}

/// Reads the layers of a SmolLM3 that do not rotate: a list with 0 for each, or every so many layers.
std::vector<int32_t> parse_unrotated_layers(const JsonFields& fields, const ModelConfig& config) {
  constexpr int32_t kUsualInterval = 4;  // what Transformers assumes
  const int32_t interval = fields.integer("no_rope_layer_interval").value_or(kUsualInterval);
  if (interval < 1) bad_input("{}: no_rope_layer_interval is {}", fields.where(), interval);
  const json* const rotates = fields.find("no_rope_layers");  // in spite of its name
  if (rotates == nullptr) {
    return layers_where(config, [&](int32_t layer) { return (layer + 1) % interval == 0; });
  }
  if (!rotates->is_array() || rotates->size() != static_cast<size_t>(config.layers) ||
      !std::all_of(rotates->begin(), rotates->end(),
                   [](const json& value) { return value == 0 || value == 1; })) {
    bad_input("{}: no_rope_layers should be a list with 0 or 1 for each layer", fields.where());
  }
  return layers_where(config, [&](int32_t layer) { return (*rotates)[static_cast<size_t>(layer)] == 0; });
}

std::vector<int32_t> parse_token_ids(const JsonFields& fields, const char* key) {
  const json* value = fields.find(key);
  if (value == nullptr) return {};
  std::vector<int32_t> ids;
  for (const json& element : value->is_array() ? *value : json::array({*value})) {
    const std::optional<int32_t> id = as_int32(element);
    if (!id) bad_input("{}: {} should be a token id or a list of them", fields.where(), key);
    if (std::find(ids.begin(), ids.end(), *id) == ids.end()) ids.push_back(*id);
  }
  return ids;
}

/// Reads the special tokens from these fields, which replace tokens read before.
void parse_special_tokens(const JsonFields& fields, ModelConfig& config) {
  const std::vector<int32_t> bos = parse_token_ids(fields, "bos_token_id");
  if (!bos.empty()) config.bos_token = bos.front();
  const std::vector<int32_t> eos = parse_token_ids(fields, "eos_token_id");
  if (!eos.empty()) config.eos_tokens = eos;
}

/// A random model stays one when it is enlarged.
Origin parse_origin(const JsonFields& fields) {
  if (fields.boolean(kRandomKey).value_or(false)) return Origin::kRandom;
  const json* const inflated = fields.find(kInflatedKey);
  return inflated != nullptr && inflated->is_object() ? Origin::kInflated : Origin::kTrained;
}

/// Ids that the model cannot produce: some files use -1 for "none".
void drop_impossible_tokens(ModelConfig& config) {
  const auto impossible = [&config](int32_t id) { return id < 0 || id >= config.vocab_size; };
  if (config.bos_token && impossible(*config.bos_token)) config.bos_token.reset();
  std::erase_if(config.eos_tokens, impossible);
}

/// Reads the sizes and settings of a model of a family with RMS norms. Its architecture must be set.
void parse_rms_norm_family(const JsonFields& fields, ModelConfig& config) {
  const std::string& file = fields.where();
  refuse_unsupported(fields, config.architecture);
  config.hidden_size = fields.required_integer("hidden_size");
  config.intermediate_size = fields.required_integer("intermediate_size");
  config.layers = fields.required_integer("num_hidden_layers");
  validate_layers(config.layers, file);
  config.heads = fields.required_integer("num_attention_heads");
  config.kv_heads = fields.integer("num_key_value_heads").value_or(config.heads);
  config.vocab_size = fields.required_integer("vocab_size");
  config.context = fields.required_integer("max_position_embeddings");
  const bool olmo2 = config.architecture == Architecture::kOlmo2;
  const bool phi3 = config.architecture == Architecture::kPhi3;
  config.fused_qkv = phi3;
  config.fused_gate_up = phi3;
  config.rope_interleaved = hugging_face_interleaves(config.architecture);
  config.rms_norm_epsilon =
      fields.number("rms_norm_eps").value_or(olmo2 || phi3 ? 1e-5f : 1e-6f);  // as Transformers assumes
  const bool smollm3 = config.architecture == Architecture::kSmolLm3;
  const bool gemma = is_gemma(config.architecture);
  config.tied_embeddings = fields.boolean("tie_word_embeddings").value_or(smollm3 || gemma);
  config.qkv_bias = config.architecture == Architecture::kQwen2;
  if (config.architecture == Architecture::kQwen3) config.head_norm = HeadNorm::kPerHead;
  const bool gpt_oss = config.architecture == Architecture::kGptOss;
  const bool glm4 = config.architecture == Architecture::kGlm4;
  if (glm4) parse_glm4(fields, config);
  if (olmo2) {
    config.head_norm = HeadNorm::kWhole;
    config.block_norms = BlockNorms::kAfter;
  }
  if (const std::optional<int32_t> head_dim = fields.integer("head_dim")) {
    config.head_dim = *head_dim;
  } else if ((config.architecture == Architecture::kQwen3 || glm4 || gemma || gpt_oss) &&
             !fields.has("head_dim")) {
    config.head_dim = gemma ? 256 : gpt_oss ? 64 : 128;  // as Transformers assumes
  } else if (config.heads > 0 && config.hidden_size % config.heads == 0) {
    config.head_dim = config.hidden_size / config.heads;
  } else {
    bad_input("{}: head_dim is missing, and hidden_size {} is no multiple of num_attention_heads {}", file,
              config.hidden_size, config.heads);
  }
  if (gemma) parse_gemma(fields, config);
  if (config.architecture == Architecture::kMixtral || config.architecture == Architecture::kQwen3Moe) {
    parse_experts(fields, config);
  }
  if (gpt_oss) parse_gpt_oss(fields, config);
  if (config.architecture == Architecture::kGranite) config.scales = parse_granite_scales(fields);
  if (smollm3) {
    config.rope_theta = 2000000.0f;  // unless stated, as Transformers assumes
    config.unrotated_layers = parse_unrotated_layers(fields, config);
  }
  parse_rope(fields, config);
  parse_sliding_window(fields, config);
}

}  // namespace

const HfFamily& hf_family(Architecture architecture) {
  return *std::ranges::find(kFamilies, architecture, &HfFamily::architecture);
}

ModelConfig parse_hf_config(std::string_view config_json,
                            std::optional<std::string_view> generation_config_json,
                            const std::string& where) {
  const std::string file = where + "/config.json";
  const json object = parse_json(config_json, kDeepestConfig, file);
  const JsonFields fields(object, file);

  ModelConfig config;
  config.architecture = parse_architecture(fields);
  if (is_layer_norm_family(config.architecture)) {
    parse_layer_norm_family(fields, config);
  } else {
    parse_rms_norm_family(fields, config);
  }
  parse_special_tokens(fields, config);
  config.origin = parse_origin(fields);

  if (generation_config_json) {
    const std::string generation_file = where + "/generation_config.json";
    const json generation = parse_json(*generation_config_json, kDeepestConfig, generation_file);
    parse_special_tokens(JsonFields(generation, generation_file), config);
  }
  drop_impossible_tokens(config);
  validate(config, file);
  return config;
}

ModelConfig read_hf_config(const fs::path& folder) {
  const auto open_text = [&folder](const char* name) {
    std::string contents = read_input(folder / name, kLongestConfig);
    if (contents.empty()) bad_input("{} is empty", (folder / name).string());
    return contents;
  };
  const auto config = open_text("config.json");
  std::error_code ignored;
  if (!fs::exists(folder / "generation_config.json", ignored)) {
    return parse_hf_config(config, std::nullopt, folder.string());
  }
  const auto generation = open_text("generation_config.json");
  return parse_hf_config(config, generation, folder.string());
}

std::optional<QuantizationConfig> read_quantization(const fs::path& folder) {
  const std::string where = (folder / "config.json").string();
  const json object = parse_json(read_input(folder / "config.json", kLongestConfig), kDeepestConfig, where);
  const JsonFields fields(object, where);
  const json* const quantization = fields.find("quantization_config");
  if (quantization == nullptr || parse_architecture(fields) == Architecture::kGptOss) return std::nullopt;
  return parse_quantization_config(*quantization, where);
}

TokenizerSource find_tokenizer(const fs::path& folder) {
  const auto present = [&folder](const char* name) {
    std::error_code ignored;
    return fs::is_regular_file(folder / name, ignored);
  };
  using Kind = TokenizerSource::Kind;
  if (present("tokenizer.model")) return {Kind::kSentencePieceModel, folder / "tokenizer.model"};
  if (present("tokenizer.json")) return {Kind::kTokenizerJson, folder / "tokenizer.json"};
  if (present("vocab.json") && present("merges.txt")) return {Kind::kTokenizerJson, folder / "vocab.json"};
  return {};
}

}  // namespace verbatim
