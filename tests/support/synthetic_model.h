#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace verbatim::test {

// Small models and model files made up on the spot, for tests of loaders and of whole models.

/// What write_tiny_llama makes. Weights are drawn from the seed alone: the same for every dtype, up to
/// rounding.
struct TinyModelOptions {
  /// "llama" or "mistral"; "qwen2", which has biases on queries, keys and values; "qwen3", which has norms of
  /// queries and keys; "smollm3", which does not rotate in every fourth layer; "granite", which has factors;
  /// "olmo2", which has norms after the parts of a layer, and of whole queries and keys;
  /// "phi3", which stores several matrices as one and rotates three quarters of each head;
  /// "gemma2" and "gemma3_text", which want a sliding_window and have soft caps, or a second theta; "glm4",
  /// which rotates neighbours in half of each head, stores gate and up as one matrix and has biases;
  /// "mixtral" and "qwen3_moe", which have experts; "gpt_oss", whose experts are in MXFP4 whatever the dtype
  /// of the rest, with sinks, biases, windows in every other layer and YaRN; "gpt2", "starcoder2" and "opt",
  /// which have LayerNorms and biases (support/layer_norm_families.h).
  std::string model_type = "llama";
  DType dtype = DType::kBF16;  ///< of safetensors: kF32, kF16 or kBF16; of GGUF also kQ8_0, kQ4_K and kQ6_K
  int32_t hidden_size = 128;
  int32_t intermediate_size = 256;
  int32_t layers = 2;
  int32_t heads = 4;
  int32_t kv_heads = 2;
  int32_t head_dim = 32;
  int32_t vocab_size = 256;
  int32_t context = 256;
  float rope_theta = 10000.0f;
  std::string rope_scaling = {};  ///< of config.json, as JSON text; none if empty
  std::optional<int32_t> sliding_window = std::nullopt;
  bool tied = false;
  int32_t shards = 1;            ///< above 1: that many files and an index
  bool byte_vocabulary = false;  ///< of GGUF, with 260 tokens: <unk>, <s>, </s>, every byte, the space
  bool nan_weight = false;       ///< one element of the first layer's down_proj is NaN
  uint32_t seed = 1;
  std::optional<DType> head_dtype = std::nullopt;  ///< of GGUF: of lm_head alone; without it `dtype`
  int32_t experts = 5;
  int32_t experts_used = 2;
  std::vector<int32_t> dense_layers = {};  ///< of qwen3_moe: layers without experts
  bool normalized_experts = true;          ///< of qwen3_moe
  bool stacked_experts = true;             ///< of GGUF; otherwise every expert is a tensor, as in old files
  std::optional<DType> value_dtype =
      std::nullopt;  ///< of GGUF: of the matrices of values; without it `dtype`
  std::optional<DType> expert_down_dtype =
      std::nullopt;  ///< of GGUF: of the last matrices of experts; without it `dtype`, or MXFP4 of a gpt-oss
};

/// The config.json of such a model.
std::string tiny_config_text(const TinyModelOptions& options);

/// Writes config.json and the weights as safetensors into the folder, which is made if need be. Without
/// tokenizer.
void write_tiny_llama(const std::filesystem::path& folder, const TinyModelOptions& options = {});

/// Writes the same model as a GGUF file: norms, biases, routers and learned positions in F32, the query and
/// key rows of a Llama permuted as that format wants them. Without vocabulary, and a Mistral is a Llama
/// there.
void write_tiny_gguf(const std::filesystem::path& file, const TinyModelOptions& options = {});

/// A tensor before it is stored.
struct NamedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
  std::string bytes = {};  ///< instead of values: what safetensors store as U8
};

/// The size of each expert of a model with experts. That of a Mixtral is its intermediate size.
int32_t tiny_expert_size(const TinyModelOptions& options);

/// The weights that both of the above store, under their Hugging Face names.
std::vector<NamedTensor> tiny_tensors(const TinyModelOptions& options);

/// The GGUF name of a tensor with this Hugging Face name in a model of a family.
std::string gguf_tensor_name(std::string name, const std::string& model_type = "llama");

/// The values of a query or key matrix whose heads rotate neighbouring pairs, as in GGUF files of Llama
/// models, made from those of one whose heads rotate two halves: row i of a head's first half becomes row 2
/// i, row i of its second half row 2 i + 1. With `rotated` the halves are those of as many first rows of a
/// head.
std::vector<float> interleave_rows(const NamedTensor& tensor, int64_t head_dim, int64_t rotated = 0);

/// The bytes of values as a dtype, rounded to nearest. kQ8_0 wants a multiple of 32 values,
/// kQ4_K and kQ6_K of 256.
std::string encode(DType dtype, const std::vector<float>& values);

/// The bytes of a safetensors file with this header and data, whatever they say.
std::string safetensors_file(const std::string& header, const std::string& data);

/// The bytes of a correct safetensors file.
std::string safetensors_file(const std::vector<NamedTensor>& tensors, DType dtype);

/// Builds the bytes of a GGUF file, piece by piece; the pieces may lie.
class GgufBuilder {
 public:
  GgufBuilder& number(const std::string& key, uint32_t value);
  GgufBuilder& number(const std::string& key, float value);
  GgufBuilder& text(const std::string& key, const std::string& value);
  GgufBuilder& boolean(const std::string& key, bool value);
  GgufBuilder& texts(const std::string& key, const std::vector<std::string>& values);
  /// Any value: the bytes after the key, the type first.
  GgufBuilder& raw(const std::string& key, const std::string& type_and_value);
  /// Row-major shape; placed after the tensors before it.
  GgufBuilder& tensor(const std::string& name, std::vector<int64_t> shape, DType dtype,
                      const std::string& bytes);
  /// An entry as given, for data that tensor() has put there or not: the fastest dimension first.
  GgufBuilder& raw_tensor(const std::string& name, const std::vector<uint64_t>& dimensions, uint32_t type,
                          uint64_t offset);
  std::string build(uint32_t version = 3, uint64_t alignment = 32) const;

 private:
  uint64_t metadata_count_ = 0;
  uint64_t tensor_count_ = 0;
  std::string metadata_;
  std::string entries_;
  std::string data_;
};

/// The little-endian bytes of a plain value.
template <typename T>
std::string bytes_of(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace verbatim::test
