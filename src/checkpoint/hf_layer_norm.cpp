#include "checkpoint/hf_layer_norm.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/hf_rope.h"

namespace verbatim {

namespace {

/// Refuses a switch that is not as usual.
void require_switch(const JsonFields& fields, const char* key, bool usual) {
  if (fields.boolean(key).value_or(usual) == usual) return;
  bad_input("{}: {} {} is not supported", fields.where(), key, !usual);
}

/// Reads a size that must be there and may have two names: GPT-2's own, and the one that other families
/// have.
std::optional<int32_t> either_integer(const JsonFields& fields, const char* name, const char* other) {
  const std::optional<int32_t> value = fields.integer(name);
  const std::optional<int32_t> second = fields.integer(other);
  if (value && second && *value != *second) {
    bad_input("{}: {} is {} where {} is {}", fields.where(), name, *value, other, *second);
  }
  return value ? value : second;
}
int32_t required_either(const JsonFields& fields, const char* name, const char* other) {
  const std::optional<int32_t> value = either_integer(fields, name, other);
  return value ? *value : fields.required_integer(name);
}

/// Reads an activation. Three of the names are of one function.
Activation parse_activation(const JsonFields& fields, const char* key, const char* usual) {
  const std::string name = fields.text(key).value_or(usual);
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return Activation::kGeluTanh;
  if (name == "relu") return Activation::kRelu;
  bad_input("{}: {} {} is not supported; gelu_new, gelu_pytorch_tanh, gelu_fast and relu are", fields.where(),
            key, printable(name));
}

void set_biases(ModelConfig& config, bool biases) {
  config.qkv_bias = biases;
  config.output_bias = biases;
  config.mlp_bias = biases;
}

/// Sets the size of a head: what `stated` says, or else the hidden size shared out.
void set_head_dim(const JsonFields& fields, std::optional<int32_t> stated, ModelConfig& config) {
  if (!stated && (config.heads < 1 || config.hidden_size % config.heads != 0)) {
    bad_input("{}: the hidden size {} is no multiple of the {} heads", fields.where(), config.hidden_size,
              config.heads);
  }
  config.head_dim = stated.value_or(config.hidden_size / std::max(config.heads, 1));
}

void parse_gpt2(const JsonFields& fields, ModelConfig& config) {
  require_switch(fields, "scale_attn_by_inverse_layer_idx", false);
  require_switch(fields, "add_cross_attention", false);
  config.hidden_size = required_either(fields, "n_embd", "hidden_size");
  config.layers = required_either(fields, "n_layer", "num_hidden_layers");
  config.heads = required_either(fields, "n_head", "num_attention_heads");
  config.kv_heads = config.heads;
  config.context = required_either(fields, "n_positions", "max_position_embeddings");
  const std::optional<int32_t> old_context = fields.integer("n_ctx");
  if (old_context && *old_context != config.context) {
    bad_input("{}: n_ctx is {} where n_positions is {}", fields.where(), *old_context, config.context);
  }
  constexpr int32_t kUsualFactor = 4;
  constexpr int32_t kMostHidden = 1 << 20;  // far above what is possible
  if (config.hidden_size < 1 || config.hidden_size > kMostHidden) {
    bad_input("{}: the hidden size {} is not possible", fields.where(), config.hidden_size);
  }
  config.intermediate_size = fields.integer("n_inner").value_or(kUsualFactor * config.hidden_size);
  set_head_dim(fields, std::nullopt, config);
  config.rms_norm_epsilon = fields.number("layer_norm_epsilon").value_or(1e-5f);
  config.activation = parse_activation(fields, "activation_function", "gelu_new");
  if (!fields.boolean("scale_attn_weights").value_or(true)) config.scales.attention = 1.0f;
  config.fused_qkv = true;
  set_biases(config, true);
  set_learned_positions(config, fields.where());
}

void parse_starcoder2(const JsonFields& fields, ModelConfig& config) {
  const auto require_text = [&fields](const char* key, const char* usual) {
    const std::string value = fields.text(key).value_or(usual);
    if (value == usual) return;
    bad_input("{}: {} {} is not supported; {} is", fields.where(), key, printable(value), usual);
  };
  require_text("norm_type", "layer_norm");
  require_text("mlp_type", "default");
  require_switch(fields, "scale_attn_weights", true);
  if (fields.find("layer_types") != nullptr) {
    bad_input("{}: layer_types are not supported for starcoder2", fields.where());
  }
  config.hidden_size = fields.required_integer("hidden_size");
  config.intermediate_size = fields.required_integer("intermediate_size");
  config.layers = fields.required_integer("num_hidden_layers");
  config.heads = fields.required_integer("num_attention_heads");
  config.kv_heads =
      fields.has("num_key_value_heads") ? fields.integer("num_key_value_heads").value_or(config.heads) : 2;
  config.context = fields.required_integer("max_position_embeddings");
  set_head_dim(fields, fields.integer("head_dim"), config);
  config.rms_norm_epsilon = fields.number("norm_epsilon").value_or(1e-5f);
  const std::optional<float> other = fields.number("layer_norm_epsilon");
  if (other && *other != config.rms_norm_epsilon) {
    bad_input("{}: layer_norm_epsilon is {} where norm_epsilon is {}", fields.where(), *other,
              config.rms_norm_epsilon);
  }
  config.activation = parse_activation(fields, "hidden_act", "gelu_pytorch_tanh");
  if (fields.find("activation_function") != nullptr &&
      parse_activation(fields, "activation_function", "") != config.activation) {
    bad_input("{}: activation_function is another activation than hidden_act", fields.where());
  }
  set_biases(config, fields.boolean("use_bias").value_or(true));
  const int32_t window = fields.integer("sliding_window").value_or(0);
  if (window < 0) bad_input("{}: sliding_window is {}", fields.where(), window);
  config.sliding_window = window;
  parse_rope(fields, config);
}

void parse_opt(const JsonFields& fields, ModelConfig& config) {
  require_switch(fields, "do_layer_norm_before", true);
  require_switch(fields, "layer_norm_elementwise_affine", true);
  require_switch(fields, "_remove_final_layer_norm", false);
  config.hidden_size = fields.required_integer("hidden_size");
  const int32_t width = fields.integer("word_embed_proj_dim").value_or(config.hidden_size);
  if (width != config.hidden_size) {
    bad_input("{}: a word_embed_proj_dim of {}, other than the hidden_size {}, is not supported",
              fields.where(), width, config.hidden_size);
  }
  config.intermediate_size = fields.required_integer("ffn_dim");
  config.layers = fields.required_integer("num_hidden_layers");
  config.heads = fields.required_integer("num_attention_heads");
  config.kv_heads = config.heads;
  config.context = fields.required_integer("max_position_embeddings");
  set_head_dim(fields, std::nullopt, config);
  config.rms_norm_epsilon = 1e-5f;
  config.activation = parse_activation(fields, "activation_function", "relu");
  set_biases(config, fields.boolean("enable_bias").value_or(true));
  set_learned_positions(config, fields.where());
}

}  // namespace

bool is_layer_norm_family(Architecture architecture) {
  return architecture == Architecture::kGpt2 || architecture == Architecture::kStarcoder2 ||
         architecture == Architecture::kOpt;
}

void parse_layer_norm_family(const JsonFields& fields, ModelConfig& config) {
  if (fields.find("quantization_config") != nullptr) {
    bad_input(
        "{}: quantized checkpoints (quantization_config) of a {} are not supported; use the original in F16 "
        "or BF16",
        fields.where(), architecture_name(config.architecture));
  }
  config.layer_norm = true;
  config.plain_mlp = true;
  config.vocab_size = fields.required_integer("vocab_size");
  config.tied_embeddings = fields.boolean("tie_word_embeddings").value_or(true);
  if (config.architecture == Architecture::kGpt2) parse_gpt2(fields, config);
  if (config.architecture == Architecture::kStarcoder2) parse_starcoder2(fields, config);
  if (config.architecture == Architecture::kOpt) parse_opt(fields, config);
}

}  // namespace verbatim
