#include "support/synthetic_model.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/float16.h"
#include "base/philox.h"
#include "checkpoint/gguf_types.h"
#include "formats/mxfp4.h"
#include "support/k_quant_blocks.h"
#include "support/layer_norm_families.h"

namespace verbatim::test {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// Even noise between centre - spread and centre + spread.
std::vector<float> noise(int64_t count, float centre, float spread, uint32_t seed, uint32_t stream) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto words = philox({static_cast<uint32_t>(i), 0, 0, 0}, {seed, stream});
    values[i] = centre + spread * (static_cast<float>(words[0] >> 8) * 0x1p-23f - 1.0f);
  }
  return values;
}

class TensorMaker {
 public:
  explicit TensorMaker(uint32_t seed) : seed_(seed) {}

  void matrix(const std::string& name, int64_t outputs, int64_t inputs) {
    const float spread = std::sqrt(3.0f / static_cast<float>(inputs));
    add(name, {outputs, inputs}, 0.0f, spread);
  }
  void matrix_of_inputs(const std::string& name, int64_t inputs, int64_t outputs) {
    add(name, {inputs, outputs}, 0.0f, std::sqrt(3.0f / static_cast<float>(inputs)));
  }
  void norm(const std::string& name, int64_t size) { add(name, {size}, 1.0f, 0.25f); }
  void norm_less_one(const std::string& name, int64_t size) { add(name, {size}, 0.0f, 0.25f); }
  void bias(const std::string& name, int64_t size) { add(name, {size}, 0.0f, 0.5f); }

  std::vector<NamedTensor> take() { return std::move(tensors_); }

 private:
  void add(const std::string& name, std::vector<int64_t> shape, float centre, float spread) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    const auto stream = static_cast<uint32_t>(tensors_.size());
    tensors_.push_back({name, std::move(shape), noise(count, centre, spread, seed_, stream)});
  }

  uint32_t seed_;
  std::vector<NamedTensor> tensors_;
};

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

bool is_gemma(const TinyModelOptions& options) {
  return options.model_type == "gemma2" || options.model_type == "gemma3_text";
}

bool has_experts(const TinyModelOptions& options, int32_t layer) {
  const std::vector<int32_t>& dense = options.dense_layers;
  const std::string& type = options.model_type;
  return (type == "mixtral" || type == "qwen3_moe" || type == "gpt_oss") &&
         std::find(dense.begin(), dense.end(), layer) == dense.end();
}

/// The matrices of an expert: gate, up and down; or, with the end ".bias", their biases.
std::vector<std::string> expert_matrices(const TinyModelOptions& options, int32_t layer, int32_t expert,
                                         const std::string& end = ".weight") {
  const bool mixtral = options.model_type == "mixtral";
  const std::string prefix = "model.layers." + std::to_string(layer) +
                             (mixtral ? ".block_sparse_moe.experts." : ".mlp.experts.") +
                             std::to_string(expert);
  if (mixtral) return {prefix + ".w1" + end, prefix + ".w3" + end, prefix + ".w2" + end};
  return {prefix + ".gate_proj" + end, prefix + ".up_proj" + end, prefix + ".down_proj" + end};
}

NamedTensor& tensor_of(std::vector<NamedTensor>& tensors, const std::string& name) {
  for (NamedTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  throw std::invalid_argument("there is no tensor " + name);
}

/// Rounds values to MXFP4 and gives the codes in pairs, and the scales.
struct Mxfp4Bytes {
  std::string pairs;
  std::string scales;
};
Mxfp4Bytes encode_mxfp4_apart(const std::vector<float>& values) {
  Mxfp4Bytes bytes;
  for (size_t begin = 0; begin < values.size(); begin += 32) {
    const Mxfp4Group group = quantize_mxfp4(std::span<const float, 32>(values.data() + begin, 32));
    bytes.scales += static_cast<char>(group.exponent);
    for (size_t i = 0; i < 32; i += 2) {
      bytes.pairs += static_cast<char>(group.codes[i] | group.codes[i + 1] << 4);
    }
  }
  return bytes;
}

/// The same as blocks of GGUF: a scale, and codes i and i + 16 in a byte.
std::string encode_mxfp4(const std::vector<float>& values) {
  std::string bytes;
  for (size_t begin = 0; begin < values.size(); begin += 32) {
    const Mxfp4Group group = quantize_mxfp4(std::span<const float, 32>(values.data() + begin, 32));
    bytes += static_cast<char>(group.exponent);
    for (size_t i = 0; i < 16; ++i) bytes += static_cast<char>(group.codes[i] | group.codes[i + 16] << 4);
  }
  return bytes;
}

/// Puts the experts of each layer of a gpt-oss into stacks as its files have them: rows of gate and up take
/// turns, and codes and scales are apart.
std::vector<NamedTensor> stacked_gpt_oss(std::vector<NamedTensor> tensors, const TinyModelOptions& options) {
  for (int32_t layer = 0; layer < options.layers; ++layer) {
    std::vector<float> gate_up;
    std::vector<float> gate_up_bias;
    std::vector<float> down;
    std::vector<float> down_bias;
    for (int32_t e = 0; e < options.experts; ++e) {
      for (const bool matrix : {true, false}) {
        const std::vector<std::string> names =
            expert_matrices(options, layer, e, matrix ? ".weight" : ".bias");
        const NamedTensor& gate = tensor_of(tensors, names[0]);
        const NamedTensor& up = tensor_of(tensors, names[1]);
        const int64_t width = matrix ? gate.shape.back() : 1;
        std::vector<float>& both = matrix ? gate_up : gate_up_bias;
        for (int64_t row = 0; row < gate.shape.front(); ++row) {
          for (const NamedTensor* const part : {&gate, &up}) {
            both.insert(both.end(), part->values.begin() + row * width,
                        part->values.begin() + (row + 1) * width);
          }
        }
        const NamedTensor& last = tensor_of(tensors, names[2]);
        std::vector<float>& stack = matrix ? down : down_bias;
        stack.insert(stack.end(), last.values.begin(), last.values.end());
      }
    }
    const std::string prefix = "model.layers." + std::to_string(layer) + ".mlp.experts.";
    std::erase_if(tensors, [&](const NamedTensor& tensor) { return tensor.name.starts_with(prefix); });
    const int64_t inner = tiny_expert_size(options);
    const int64_t hidden = options.hidden_size;
    const auto add = [&](const char* name, int64_t rows, int64_t columns, const std::vector<float>& values,
                         const std::vector<float>& bias) {
      const Mxfp4Bytes bytes = encode_mxfp4_apart(values);
      const std::string stem = prefix + name;
      tensors.push_back({stem + "_blocks", {options.experts, rows, columns / 32, 16}, {}, bytes.pairs});
      tensors.push_back({stem + "_scales", {options.experts, rows, columns / 32}, {}, bytes.scales});
      tensors.push_back({stem + "_bias", {options.experts, rows}, bias});
    };
    add("gate_up_proj", 2 * inner, hidden, gate_up, gate_up_bias);
    add("down_proj", hidden, inner, down, down_bias);
  }
  return tensors;
}

/// Puts the experts of each layer into one tensor for each kind of matrix, as GGUF files have them, or gives
/// them the names that they have in old files.
std::vector<NamedTensor> gguf_experts(std::vector<NamedTensor> tensors, const TinyModelOptions& options) {
  const char* const kinds[] = {"ffn_gate", "ffn_up", "ffn_down"};
  for (int32_t layer = 0; layer < options.layers; ++layer) {
    if (!has_experts(options, layer)) continue;
    for (size_t i = 0; i < (options.model_type == "gpt_oss" ? 6 : 3); ++i) {
      const size_t kind = i % 3;
      const std::string end = i < 3 ? ".weight" : ".bias";
      const std::string stem = "blk." + std::to_string(layer) + "." + kinds[kind];
      NamedTensor stack{stem + "_exps" + end, {}, {}};
      for (int32_t e = 0; e < options.experts; ++e) {
        const std::string name = expert_matrices(options, layer, e, end)[kind];
        const auto found = std::find_if(tensors.begin(), tensors.end(),
                                        [&](const NamedTensor& tensor) { return tensor.name == name; });
        if (!options.stacked_experts) {
          found->name = stem + "." + std::to_string(e) + end;
          continue;
        }
        stack.shape = found->shape;
        stack.shape.insert(stack.shape.begin(), options.experts);
        stack.values.insert(stack.values.end(), found->values.begin(), found->values.end());
        tensors.erase(found);
      }
      if (options.stacked_experts) tensors.push_back(std::move(stack));
    }
  }
  return tensors;
}

/// Makes the tensors of a model with LayerNorms.
void make_layer_norm_tensors(const TinyModelOptions& options, TensorMaker& maker) {
  for (const LayerNormTensor& tensor : layer_norm_tensors(options)) {
    if (tensor.kind == LayerNormTensor::kMatrix) maker.matrix(tensor.name, tensor.shape[0], tensor.shape[1]);
    if (tensor.kind == LayerNormTensor::kMatrixOfInputs) {
      maker.matrix_of_inputs(tensor.name, tensor.shape[0], tensor.shape[1]);
    }
    if (tensor.kind == LayerNormTensor::kNorm) maker.norm(tensor.name, tensor.shape[0]);
    if (tensor.kind == LayerNormTensor::kBias) maker.bias(tensor.name, tensor.shape[0]);
  }
}

json tiny_config(const TinyModelOptions& options) {
  if (has_layer_norms(options.model_type)) return layer_norm_config(options);
  json config = {
      {"model_type", options.model_type},
      {"hidden_size", options.hidden_size},
      {"intermediate_size", options.intermediate_size},
      {"num_hidden_layers", options.layers},
      {"num_attention_heads", options.heads},
      {"num_key_value_heads", options.kv_heads},
      {"head_dim", options.head_dim},
      {"vocab_size", options.vocab_size},
      {"max_position_embeddings", options.context},
      {"rms_norm_eps", 1e-5},
      {"rope_theta", options.rope_theta},
      {"tie_word_embeddings", options.tied},
      {"hidden_act", "silu"},
      {"bos_token_id", 1},
      {"eos_token_id", 2},
  };
  if (!options.rope_scaling.empty()) config["rope_scaling"] = json::parse(options.rope_scaling);
  config["sliding_window"] = options.sliding_window ? json(*options.sliding_window) : json();
  if (options.model_type == "gemma2") {
    config["attn_logit_softcapping"] = 2.0;
    config["final_logit_softcapping"] = 5.0;
  }
  if (is_gemma(options)) config["query_pre_attn_scalar"] = options.head_dim;
  if (options.model_type == "phi3") config["partial_rotary_factor"] = 0.75;
  if (options.model_type == "glm4") config.update({{"partial_rotary_factor", 0.5}, {"attention_bias", true}});
  if (options.model_type == "granite") {
    config["embedding_multiplier"] = 2.5;
    config["residual_multiplier"] = 0.4;
    config["attention_multiplier"] = 0.25;
    config["logits_scaling"] = 0.5;
  }
  if (options.model_type == "mixtral") {
    config.update({{"num_local_experts", options.experts}, {"num_experts_per_tok", options.experts_used}});
  }
  if (options.model_type == "gpt_oss") {
    config.update({{"num_local_experts", options.experts},
                   {"num_experts_per_tok", options.experts_used},
                   {"swiglu_limit", 7.0},
                   {"quantization_config", {{"quant_method", "mxfp4"}}},
                   {"rope_scaling",
                    {{"rope_type", "yarn"},
                     {"factor", 4.0},
                     {"truncate", false},
                     {"original_max_position_embeddings", options.context / 4}}}});
  }
  if (options.model_type == "qwen3_moe") {
    config.update({{"num_experts", options.experts},
                   {"num_experts_per_tok", options.experts_used},
                   {"moe_intermediate_size", tiny_expert_size(options)},
                   {"norm_topk_prob", options.normalized_experts},
                   {"mlp_only_layers", options.dense_layers}});
  }
  if (options.model_type == "smollm3") {
    config["no_rope_layers"] = json::array();
    for (int32_t layer = 0; layer < options.layers; ++layer) {
      config["no_rope_layers"].push_back((layer + 1) % 4 == 0 ? 0 : 1);
    }
    config["use_sliding_window"] = options.sliding_window.has_value();
  }
  if (options.model_type.starts_with("qwen")) {
    config["use_sliding_window"] = options.sliding_window.has_value();
    config["max_window_layers"] = options.sliding_window ? 0 : options.layers;
  }
  return config;
}

std::string dtype_text(DType dtype) {
  if (dtype == DType::kQ8_0) throw std::invalid_argument("safetensors have no Q8_0");
  return dtype_name(dtype);
}

std::string gguf_text(const std::string& text) {
  return bytes_of<uint64_t>(text.size()) + text;
}

void add_byte_vocabulary(GgufBuilder& builder) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  const char* const digits = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">");
  }
  tokens.push_back("\u2581");  // a space
  constexpr uint32_t kFloat = 6;
  constexpr uint32_t kInt32 = 5;
  constexpr uint32_t kArray = 9;
  const uint64_t count = tokens.size();
  std::string scores = bytes_of(kArray) + bytes_of(kFloat) + bytes_of(count);
  std::string types = bytes_of(kArray) + bytes_of(kInt32) + bytes_of(count);
  for (uint64_t i = 0; i < count; ++i) {
    scores += bytes_of(0.0f);
    types += bytes_of<int32_t>(i < 3 ? 3 : i < 259 ? 6 : 1);  // control tokens, bytes, a normal one
  }
  builder.text("tokenizer.ggml.model", "llama")
      .boolean("tokenizer.ggml.add_space_prefix", false)
      .texts("tokenizer.ggml.tokens", tokens)
      .raw("tokenizer.ggml.scores", scores)
      .raw("tokenizer.ggml.token_type", types);
}

std::string encode_q8_0(const std::vector<float>& values) {
  std::string bytes;
  for (size_t begin = 0; begin < values.size(); begin += 32) {
    float largest = 0.0f;
    for (size_t i = begin; i < begin + 32; ++i) largest = std::max(largest, std::abs(values[i]));
    const Float16 scale = to_float16(largest / 127.0f);
    bytes += bytes_of(scale.bits);
    for (size_t i = begin; i < begin + 32; ++i) {
      const float steps = largest == 0.0f ? 0.0f : values[i] / to_float(scale);
      bytes += static_cast<char>(static_cast<int8_t>(std::clamp(std::round(steps), -127.0f, 127.0f)));
    }
  }
  return bytes;
}

}  // namespace

std::string gguf_tensor_name(std::string name, const std::string& model_type) {
  const std::pair<const char*, const char*> parts[] = {{"model.embed_tokens", "token_embd"},
                                                       {"model.norm", "output_norm"},
                                                       {"lm_head", "output"},
                                                       {"model.layers", "blk"},
                                                       {"input_layernorm", "attn_norm"},
                                                       {"self_attn.q_proj", "attn_q"},
                                                       {"self_attn.k_proj", "attn_k"},
                                                       {"self_attn.v_proj", "attn_v"},
                                                       {"self_attn.o_proj", "attn_output"},
                                                       {"post_attention_layernorm", "ffn_norm"},
                                                       {"mlp.gate_proj", "ffn_gate"},
                                                       {"mlp.up_proj", "ffn_up"},
                                                       {"mlp.down_proj", "ffn_down"},
                                                       {"block_sparse_moe.gate.", "ffn_gate_inp."},
                                                       {"mlp.gate.", "ffn_gate_inp."},
                                                       {"mlp.router.", "ffn_gate_inp."},
                                                       {"self_attn.sinks", "attn_sinks.weight"},
                                                       {"self_attn.q_norm", "attn_q_norm"},
                                                       {"self_attn.k_norm", "attn_k_norm"}};
  if (has_layer_norms(model_type)) name = layer_norm_gguf_name(name);
  if (model_type == "phi3" || model_type == "glm4") {
    for (const auto& [from, to] :
         {std::pair("self_attn.qkv_proj", "attn_qkv"), std::pair("mlp.gate_up_proj", "ffn_up")}) {
      const size_t at = name.find(from);
      if (at != std::string::npos) name.replace(at, std::string(from).size(), to);
    }
  }
  if (model_type == "gpt_oss") {
    const std::string norm = "post_attention_layernorm";
    if (const size_t at = name.find(norm); at != std::string::npos) {
      name.replace(at, norm.size(), "post_attention_norm");
    }
  }
  if (model_type == "glm4") {
    for (const auto& [from, to] : {std::pair("post_self_attn_layernorm", "post_attention_norm"),
                                   std::pair("post_mlp_layernorm", "post_ffw_norm")}) {
      const size_t at = name.find(from);
      if (at != std::string::npos) name.replace(at, std::string(from).size(), to);
    }
  }
  if (model_type == "olmo2" || model_type.starts_with("gemma")) {
    for (const auto& [from, to] : {std::pair("pre_feedforward_layernorm", "ffn_norm"),
                                   std::pair("post_attention_layernorm", "post_attention_norm"),
                                   std::pair("post_feedforward_layernorm", "post_ffw_norm")}) {
      const size_t at = name.find(from);
      if (at != std::string::npos) name.replace(at, std::string(from).size(), to);
    }
  }
  for (const auto& [from, to] : parts) {
    const size_t at = name.find(from);
    if (at != std::string::npos) name.replace(at, std::string(from).size(), to);
  }
  return name;
}

std::vector<float> interleave_rows(const NamedTensor& tensor, int64_t head_dim, int64_t rotated) {
  const int64_t columns = tensor.shape.size() > 1 ? tensor.shape.back() : 1;
  std::vector<float> result(tensor.values.size());
  for (int64_t row = 0; row < tensor.shape[0]; ++row) {
    const int64_t head = row / head_dim;
    const int64_t within = row % head_dim;
    const int64_t half = (rotated > 0 ? rotated : head_dim) / 2;
    const int64_t moved = within < half ? 2 * within : 2 * (within - half) + 1;
    const int64_t target = head * head_dim + (within < 2 * half ? moved : within);
    std::copy_n(tensor.values.begin() + row * columns, columns, result.begin() + target * columns);
  }
  return result;
}

int32_t tiny_expert_size(const TinyModelOptions& options) {
  return options.model_type == "qwen3_moe" ? options.intermediate_size / 2 : options.intermediate_size;
}

std::vector<NamedTensor> tiny_tensors(const TinyModelOptions& options) {
  const int64_t hidden = options.hidden_size;
  const int64_t query = int64_t{options.heads} * options.head_dim;
  const int64_t key = int64_t{options.kv_heads} * options.head_dim;
  TensorMaker maker(options.seed);
  if (has_layer_norms(options.model_type)) {
    make_layer_norm_tensors(options, maker);
    return maker.take();
  }
  maker.matrix("model.embed_tokens.weight", options.vocab_size, hidden);
  for (int32_t layer = 0; layer < options.layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    const bool olmo2 = options.model_type == "olmo2";  // has norms after the parts of a layer alone
    const bool gemma = is_gemma(options);              // has norms on both sides, stored less 1
    if (gemma) {
      for (const char* name : {"input_layernorm.weight", "post_attention_layernorm.weight",
                               "pre_feedforward_layernorm.weight", "post_feedforward_layernorm.weight"}) {
        maker.norm_less_one(prefix + name, hidden);
      }
    } else if (!olmo2) {
      maker.norm(prefix + "input_layernorm.weight", hidden);
    }
    if (options.model_type == "gemma3_text") {
      maker.norm_less_one(prefix + "self_attn.q_norm.weight", options.head_dim);
      maker.norm_less_one(prefix + "self_attn.k_norm.weight", options.head_dim);
    }
    const bool phi3 = options.model_type == "phi3";  // has one matrix for queries, keys and values
    if (phi3) {
      maker.matrix(prefix + "self_attn.qkv_proj.weight", query + 2 * key, hidden);
    } else {
      maker.matrix(prefix + "self_attn.q_proj.weight", query, hidden);
      maker.matrix(prefix + "self_attn.k_proj.weight", key, hidden);
      maker.matrix(prefix + "self_attn.v_proj.weight", key, hidden);
    }
    maker.matrix(prefix + "self_attn.o_proj.weight", hidden, query);
    const bool glm4 = options.model_type == "glm4";
    const bool gpt_oss = options.model_type == "gpt_oss";
    if (gpt_oss) {
      maker.bias(prefix + "self_attn.o_proj.bias", hidden);
      maker.bias(prefix + "self_attn.sinks", options.heads);
      maker.bias(prefix + "mlp.router.bias", options.experts);
      for (int32_t e = 0; e < options.experts; ++e) {
        const std::vector<std::string> names = expert_matrices(options, layer, e, ".bias");
        maker.bias(names[0], tiny_expert_size(options));
        maker.bias(names[1], tiny_expert_size(options));
        maker.bias(names[2], hidden);
      }
    }
    if (options.model_type == "qwen2" || glm4 || gpt_oss) {
      maker.bias(prefix + "self_attn.q_proj.bias", query);
      maker.bias(prefix + "self_attn.k_proj.bias", key);
      maker.bias(prefix + "self_attn.v_proj.bias", key);
    }
    if (options.model_type == "qwen3" || options.model_type == "qwen3_moe") {
      maker.norm(prefix + "self_attn.q_norm.weight", options.head_dim);
      maker.norm(prefix + "self_attn.k_norm.weight", options.head_dim);
    }
    if (olmo2) {
      maker.norm(prefix + "self_attn.q_norm.weight", query);
      maker.norm(prefix + "self_attn.k_norm.weight", key);
      maker.norm(prefix + "post_feedforward_layernorm.weight", hidden);
    }
    if (!gemma) maker.norm(prefix + "post_attention_layernorm.weight", hidden);
    if (glm4) {
      maker.norm(prefix + "post_self_attn_layernorm.weight", hidden);
      maker.norm(prefix + "post_mlp_layernorm.weight", hidden);
    }
    if (has_experts(options, layer)) {
      const std::string router = options.model_type == "mixtral" ? "block_sparse_moe.gate.weight"
                                 : gpt_oss                       ? "mlp.router.weight"
                                                                 : "mlp.gate.weight";
      maker.matrix(prefix + router, options.experts, hidden);
      for (int32_t e = 0; e < options.experts; ++e) {
        const std::vector<std::string> names = expert_matrices(options, layer, e);
        maker.matrix(names[0], tiny_expert_size(options), hidden);
        maker.matrix(names[1], tiny_expert_size(options), hidden);
        maker.matrix(names[2], hidden, tiny_expert_size(options));
      }
      continue;
    }
    if (phi3 || glm4) {
      maker.matrix(prefix + "mlp.gate_up_proj.weight", 2 * options.intermediate_size, hidden);
    } else {
      maker.matrix(prefix + "mlp.gate_proj.weight", options.intermediate_size, hidden);
      maker.matrix(prefix + "mlp.up_proj.weight", options.intermediate_size, hidden);
    }
    maker.matrix(prefix + "mlp.down_proj.weight", hidden, options.intermediate_size);
  }
  if (is_gemma(options)) {
    maker.norm_less_one("model.norm.weight", hidden);
  } else {
    maker.norm("model.norm.weight", hidden);
  }
  if (!options.tied) maker.matrix("lm_head.weight", options.vocab_size, hidden);
  std::vector<NamedTensor> tensors = maker.take();
  if (options.nan_weight) {
    for (NamedTensor& tensor : tensors) {
      if (tensor.name != "model.layers.0.mlp.down_proj.weight") continue;
      tensor.values.front() = std::numeric_limits<float>::quiet_NaN();
    }
  }
  return tensors;
}

std::string encode(DType dtype, const std::vector<float>& values) {
  if (dtype == DType::kQ8_0) return encode_q8_0(values);
  if (dtype == DType::kQ4_K || dtype == DType::kQ6_K) return encode_k_quants(dtype, values);
  if (dtype == DType::kMXFP4) return encode_mxfp4(values);
  std::string bytes;
  bytes.reserve(dtype_bytes(dtype, values.size()));
  for (const float value : values) {
    if (dtype == DType::kF32) bytes += bytes_of(value);
    if (dtype == DType::kF16) bytes += bytes_of(to_float16(value).bits);
    if (dtype == DType::kBF16) bytes += bytes_of(to_bfloat16(value).bits);
  }
  return bytes;
}

std::string safetensors_file(const std::string& header, const std::string& data) {
  return bytes_of<uint64_t>(header.size()) + header + data;
}

std::string safetensors_file(const std::vector<NamedTensor>& tensors, DType dtype) {
  json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const NamedTensor& tensor : tensors) {
    const size_t begin = data.size();
    data += tensor.bytes.empty() ? encode(dtype, tensor.values) : tensor.bytes;
    header[tensor.name] = {{"dtype", tensor.bytes.empty() ? dtype_text(dtype) : "U8"},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, data.size()}}};
  }
  return safetensors_file(header.dump(), data);
}

std::string tiny_config_text(const TinyModelOptions& options) {
  return tiny_config(options).dump(2);
}

void write_tiny_llama(const fs::path& folder, const TinyModelOptions& options) {
  fs::create_directories(folder);
  write_file(folder / "config.json", tiny_config_text(options));
  const std::vector<NamedTensor> tensors = options.model_type == "gpt_oss"
                                               ? stacked_gpt_oss(tiny_tensors(options), options)
                                               : tiny_tensors(options);
  if (options.shards <= 1) {
    write_file(folder / "model.safetensors", safetensors_file(tensors, options.dtype));
    return;
  }
  const auto shards = static_cast<size_t>(options.shards);
  json index;
  for (size_t shard = 0; shard < shards; ++shard) {
    const std::string name =
        "model-" + std::to_string(shard + 1) + "-of-" + std::to_string(shards) + ".safetensors";
    const std::vector<NamedTensor> part(tensors.begin() + tensors.size() * shard / shards,
                                        tensors.begin() + tensors.size() * (shard + 1) / shards);
    write_file(folder / name, safetensors_file(part, options.dtype));
    for (const NamedTensor& tensor : part) index["weight_map"][tensor.name] = name;
  }
  write_file(folder / "model.safetensors.index.json", index.dump());
}

void write_tiny_gguf(const fs::path& file, const TinyModelOptions& options) {
  std::string architecture = options.model_type;
  if (architecture == "mistral" || architecture == "mixtral") architecture = "llama";
  if (architecture == "qwen3_moe") architecture = "qwen3moe";
  if (architecture == "gpt_oss") architecture = "gpt-oss";
  if (architecture == "gemma3_text") architecture = "gemma3";
  const std::string prefix = architecture + ".";
  const bool gpt2 = architecture == "gpt2";
  GgufBuilder builder;
  builder.text("general.architecture", architecture)
      .number(prefix + "embedding_length", static_cast<uint32_t>(options.hidden_size))
      .number(prefix + "feed_forward_length", static_cast<uint32_t>(options.intermediate_size))
      .number(prefix + "block_count", static_cast<uint32_t>(options.layers))
      .number(prefix + "attention.head_count", static_cast<uint32_t>(options.heads))
      .number(prefix + "attention.head_count_kv",
              static_cast<uint32_t>(gpt2 ? options.heads : options.kv_heads))
      .number(prefix + "attention.key_length", static_cast<uint32_t>(options.head_dim))
      .number(prefix + (has_layer_norms(architecture) ? "attention.layer_norm_epsilon"
                                                      : "attention.layer_norm_rms_epsilon"),
              1e-5f)
      .number(prefix + "context_length", static_cast<uint32_t>(options.context))
      .number("tokenizer.ggml.bos_token_id", 1u)
      .number("tokenizer.ggml.eos_token_id", 2u);
  if (!gpt2) builder.number(prefix + "rope.freq_base", options.rope_theta);
  if (options.sliding_window) {
    builder.number(prefix + "attention.sliding_window", static_cast<uint32_t>(*options.sliding_window));
  }
  if (architecture == "gemma2") {
    builder.number(prefix + "attn_logit_softcapping", 2.0f).number(prefix + "final_logit_softcapping", 5.0f);
  }
  if (architecture == "phi3") {
    builder.number(prefix + "rope.dimension_count", static_cast<uint32_t>(options.head_dim * 3 / 4));
  }
  if (architecture == "glm4") {
    builder.number(prefix + "rope.dimension_count", static_cast<uint32_t>(options.head_dim / 2));
  }
  if (architecture == "gpt-oss") {
    builder.text(prefix + "rope.scaling.type", "yarn")
        .number(prefix + "rope.scaling.factor", 4.0f)
        .number(prefix + "rope.scaling.original_context_length", static_cast<uint32_t>(options.context / 4));
  }
  if (has_experts(options, -1)) {
    builder.number(prefix + "expert_count", static_cast<uint32_t>(options.experts))
        .number(prefix + "expert_used_count", static_cast<uint32_t>(options.experts_used));
  }
  if (options.model_type == "qwen3_moe" || options.model_type == "gpt_oss") {
    builder.number(prefix + "expert_feed_forward_length", static_cast<uint32_t>(tiny_expert_size(options)));
  }
  if (architecture == "granite") {
    builder.number(prefix + "embedding_scale", 2.5f)
        .number(prefix + "residual_scale", 0.4f)
        .number(prefix + "attention.scale", 0.25f)
        .number(prefix + "logit_scale", 0.5f);
  }
  if (options.byte_vocabulary) add_byte_vocabulary(builder);
  for (const NamedTensor& made : gguf_experts(tiny_tensors(options), options)) {
    const NamedTensor tensor = gpt2 ? with_rows_of_outputs(made) : made;
    const bool rotates = tensor.name.find("q_proj") != std::string::npos ||  //
                         tensor.name.find("k_proj") != std::string::npos;
    const bool router = tensor.name.ends_with("mlp.gate.weight") ||
                        tensor.name.ends_with("moe.gate.weight") ||
                        tensor.name.ends_with("mlp.router.weight");
    const bool bias = tensor.name.ends_with(".bias");
    const bool expert = tensor.name.find("_exps.weight") != std::string::npos;
    const bool values_matrix = tensor.name.find("self_attn.v_proj") != std::string::npos;
    const bool expert_down = has_experts(options, -1) && tensor.name.find(".ffn_down") != std::string::npos;
    const bool gpt_oss = options.model_type == "gpt_oss";
    const DType expert_down_dtype =
        options.expert_down_dtype.value_or(gpt_oss ? DType::kMXFP4 : options.dtype);
    const DType matrix_dtype = tensor.name == "lm_head.weight" ? options.head_dtype.value_or(options.dtype)
                               : values_matrix                 ? options.value_dtype.value_or(options.dtype)
                               : expert_down                   ? expert_down_dtype
                               : expert && gpt_oss             ? DType::kMXFP4
                                                               : options.dtype;
    const bool small = tensor.shape.size() == 1 || router || bias || tensor.name == "wpe.weight";
    const DType dtype = small ? DType::kF32 : matrix_dtype;
    std::vector<float> values =
        rotates && (architecture == "llama" || architecture == "smollm3" || architecture == "granite")
            ? interleave_rows(tensor, options.head_dim)
            : tensor.values;
    if (is_gemma(options) && tensor.shape.size() == 1) {
      for (float& value : values) value += 1.0f;  // norms are stored whole there
    }
    builder.tensor(gguf_tensor_name(tensor.name, options.model_type), tensor.shape, dtype,
                   encode(dtype, values));
  }
  write_file(file, builder.build());
}

GgufBuilder& GgufBuilder::raw(const std::string& key, const std::string& type_and_value) {
  metadata_ += gguf_text(key) + type_and_value;
  ++metadata_count_;
  return *this;
}

GgufBuilder& GgufBuilder::number(const std::string& key, uint32_t value) {
  return raw(key, bytes_of<uint32_t>(4) + bytes_of(value));
}

GgufBuilder& GgufBuilder::number(const std::string& key, float value) {
  return raw(key, bytes_of<uint32_t>(6) + bytes_of(value));
}

GgufBuilder& GgufBuilder::text(const std::string& key, const std::string& value) {
  return raw(key, bytes_of<uint32_t>(8) + gguf_text(value));
}

GgufBuilder& GgufBuilder::boolean(const std::string& key, bool value) {
  return raw(key, bytes_of<uint32_t>(7) + std::string(1, value ? '\1' : '\0'));
}

GgufBuilder& GgufBuilder::texts(const std::string& key, const std::vector<std::string>& values) {
  std::string bytes = bytes_of<uint32_t>(9) + bytes_of<uint32_t>(8) + bytes_of<uint64_t>(values.size());
  for (const std::string& value : values) bytes += gguf_text(value);
  return raw(key, bytes);
}

GgufBuilder& GgufBuilder::raw_tensor(const std::string& name, const std::vector<uint64_t>& dimensions,
                                     uint32_t type, uint64_t offset) {
  entries_ += gguf_text(name) + bytes_of(static_cast<uint32_t>(dimensions.size()));
  for (const uint64_t size : dimensions) entries_ += bytes_of(size);
  entries_ += bytes_of(type) + bytes_of(offset);
  ++tensor_count_;
  return *this;
}

GgufBuilder& GgufBuilder::tensor(const std::string& name, std::vector<int64_t> shape, DType dtype,
                                 const std::string& bytes) {
  raw_tensor(name, std::vector<uint64_t>(shape.rbegin(), shape.rend()), gguf_number(dtype), data_.size());
  data_ += bytes;
  data_.resize((data_.size() + 31) / 32 * 32);
  return *this;
}

std::string GgufBuilder::build(uint32_t version, uint64_t alignment) const {
  std::string file = "GGUF" + bytes_of(version) + bytes_of(tensor_count_) + bytes_of(metadata_count_);
  file += metadata_ + entries_;
  file.resize((file.size() + alignment - 1) / alignment * alignment);
  return file + data_;
}

}  // namespace verbatim::test
