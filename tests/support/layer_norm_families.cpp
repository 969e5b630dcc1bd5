#include "support/layer_norm_families.h"

#include <fmt/format.h>

#include <utility>

namespace verbatim::test {

using nlohmann::json;

bool has_layer_norms(const std::string& model_type) {
  return model_type == "gpt2" || model_type == "starcoder2" || model_type == "opt";
}

json layer_norm_config(const TinyModelOptions& options) {
  json config = {{"model_type", options.model_type},
                 {"vocab_size", options.vocab_size},
                 {"tie_word_embeddings", options.tied},
                 {"bos_token_id", 1},
                 {"eos_token_id", 2}};
  if (options.model_type == "gpt2") {
    config.update({{"n_embd", options.hidden_size},
                   {"n_inner", options.intermediate_size},
                   {"n_layer", options.layers},
                   {"n_head", options.heads},
                   {"n_positions", options.context},
                   {"layer_norm_epsilon", 1e-5},
                   {"activation_function", "gelu_new"}});
    return config;
  }
  config.update({{"hidden_size", options.hidden_size},
                 {"num_hidden_layers", options.layers},
                 {"num_attention_heads", options.heads},
                 {"max_position_embeddings", options.context}});
  if (options.model_type == "opt") {
    config.update({{"ffn_dim", options.intermediate_size},
                   {"word_embed_proj_dim", options.hidden_size},
                   {"do_layer_norm_before", true},
                   {"activation_function", "relu"}});
    return config;
  }
  config.update({{"intermediate_size", options.intermediate_size},
                 {"num_key_value_heads", options.kv_heads},
                 {"head_dim", options.head_dim},
                 {"norm_epsilon", 1e-5},
                 {"rope_theta", options.rope_theta},
                 {"use_bias", true},
                 {"hidden_act", "gelu_pytorch_tanh"},
                 {"sliding_window", options.sliding_window ? json(*options.sliding_window) : json()}});
  return config;
}

std::vector<LayerNormTensor> layer_norm_tensors(const TinyModelOptions& options) {
  const int64_t hidden = options.hidden_size;
  const int64_t inner = options.intermediate_size;
  std::vector<LayerNormTensor> tensors;
  const auto matrix = [&](const std::string& name, int64_t outputs, int64_t inputs) {
    tensors.push_back({LayerNormTensor::kMatrix, name + ".weight", {outputs, inputs}});
  };
  const auto linear = [&](const std::string& name, int64_t outputs, int64_t inputs) {
    if (options.model_type == "gpt2") {
      tensors.push_back({LayerNormTensor::kMatrixOfInputs, name + ".weight", {inputs, outputs}});
    } else {
      matrix(name, outputs, inputs);
    }
    tensors.push_back({LayerNormTensor::kBias, name + ".bias", {outputs}});
  };
  const auto norm = [&](const std::string& name) {
    tensors.push_back({LayerNormTensor::kNorm, name + ".weight", {hidden}});
    tensors.push_back({LayerNormTensor::kBias, name + ".bias", {hidden}});
  };
  if (options.model_type == "gpt2") {
    matrix("wte", options.vocab_size, hidden);
    matrix("wpe", options.context, hidden);
    for (int32_t layer = 0; layer < options.layers; ++layer) {
      const std::string prefix = fmt::format("h.{}.", layer);
      norm(prefix + "ln_1");
      linear(prefix + "attn.c_attn", 3 * hidden, hidden);
      linear(prefix + "attn.c_proj", hidden, hidden);
      norm(prefix + "ln_2");
      linear(prefix + "mlp.c_fc", inner, hidden);
      linear(prefix + "mlp.c_proj", hidden, inner);
    }
    norm("ln_f");
  } else if (options.model_type == "opt") {
    const std::string decoder = "model.decoder.";
    matrix(decoder + "embed_tokens", options.vocab_size, hidden);
    matrix(decoder + "embed_positions", options.context + 2, hidden);
    for (int32_t layer = 0; layer < options.layers; ++layer) {
      const std::string prefix = fmt::format("{}layers.{}.", decoder, layer);
      norm(prefix + "self_attn_layer_norm");
      for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
        linear(fmt::format("{}self_attn.{}", prefix, name), hidden, hidden);
      }
      norm(prefix + "final_layer_norm");
      linear(prefix + "fc1", inner, hidden);
      linear(prefix + "fc2", hidden, inner);
    }
    norm(decoder + "final_layer_norm");
  } else {
    const int64_t query = int64_t{options.heads} * options.head_dim;
    const int64_t key = int64_t{options.kv_heads} * options.head_dim;
    matrix("model.embed_tokens", options.vocab_size, hidden);
    for (int32_t layer = 0; layer < options.layers; ++layer) {
      const std::string prefix = fmt::format("model.layers.{}.", layer);
      norm(prefix + "input_layernorm");
      linear(prefix + "self_attn.q_proj", query, hidden);
      linear(prefix + "self_attn.k_proj", key, hidden);
      linear(prefix + "self_attn.v_proj", key, hidden);
      linear(prefix + "self_attn.o_proj", hidden, query);
      norm(prefix + "post_attention_layernorm");
      linear(prefix + "mlp.c_fc", inner, hidden);
      linear(prefix + "mlp.c_proj", hidden, inner);
    }
    norm("model.norm");
  }
  if (!options.tied) matrix("lm_head", options.vocab_size, hidden);
  return tensors;
}

NamedTensor with_rows_of_outputs(const NamedTensor& tensor) {
  const bool of_inputs = tensor.name.starts_with("h.") && tensor.shape.size() == 2;
  if (!of_inputs) return tensor;
  NamedTensor turned{tensor.name, {tensor.shape[1], tensor.shape[0]}, {}};
  for (int64_t output = 0; output < turned.shape[0]; ++output) {
    for (int64_t input = 0; input < turned.shape[1]; ++input) {
      turned.values.push_back(tensor.values[static_cast<size_t>(input * turned.shape[0] + output)]);
    }
  }
  return turned;
}

std::string layer_norm_gguf_name(std::string name) {
  const std::pair<const char*, const char*> parts[] = {
      {"attn.c_attn", "attn_qkv"}, {"attn.c_proj", "attn_output"}, {"mlp.c_fc", "ffn_up"},
      {"mlp.c_proj", "ffn_down"},  {"ln_1", "attn_norm"},          {"ln_2", "ffn_norm"},
      {"ln_f", "output_norm"},     {"wte", "token_embd"},          {"wpe", "position_embd"}};
  if (name.starts_with("h.")) name.replace(0, 1, "blk");
  for (const auto& [from, to] : parts) {
    const size_t at = name.find(from);
    if (at != std::string::npos) name.replace(at, std::string(from).size(), to);
  }
  return name;
}

}  // namespace verbatim::test
