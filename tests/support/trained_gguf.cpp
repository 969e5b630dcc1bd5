#include "support/trained_gguf.h"

#include <fstream>

#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "text/sentencepiece_model.h"

namespace verbatim::test {

namespace fs = std::filesystem;

namespace {

template <typename T>
std::string gguf_array_bytes(uint32_t element_type, const std::vector<T>& values) {
  std::string bytes = bytes_of<uint32_t>(9) + bytes_of(element_type) + bytes_of<uint64_t>(values.size());
  for (const T value : values) bytes += bytes_of(value);
  return bytes;
}

void add_vocabulary(const SentencePieceModel& model, GgufBuilder& builder) {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;
  for (const SentencePieceModel::Entry& entry : model.entries) {
    tokens.push_back(entry.text);
    scores.push_back(
        -static_cast<float>(scores.size()));  // BPE pieces are numbered in the order of their merges
    types.push_back(static_cast<int32_t>(entry.type));
  }
  builder.text("tokenizer.ggml.model", "llama")
      .texts("tokenizer.ggml.tokens", tokens)
      .raw("tokenizer.ggml.scores", gguf_array_bytes(6, scores))
      .raw("tokenizer.ggml.token_type", gguf_array_bytes(5, types))
      .number("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(model.bos))
      .number("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(model.eos))
      .boolean("tokenizer.ggml.add_space_prefix", model.add_dummy_prefix);
}

}  // namespace

DType type_in_q4_k_m(const std::string& name, int64_t layers) {
  if (name == "model.embed_tokens.weight" || name == "lm_head.weight") return DType::kQ6_K;
  const bool sensitive =
      name.find("v_proj") != std::string::npos || name.find("down_proj") != std::string::npos;
  if (!sensitive) return DType::kQ4_K;
  const int64_t layer = std::stoll(name.substr(std::string("model.layers.").size()));
  const int64_t eighth = layers / 8;
  const bool finer = layer < eighth || layer >= layers - eighth || (layer - eighth) % 3 == 2;
  return finer ? DType::kQ6_K : DType::kQ4_K;
}

void write_trained_gguf(const fs::path& model, const fs::path& file, DType dtype) {
  write_trained_gguf(model, file, [&](const std::string&, int64_t) { return dtype; });
}

void write_trained_gguf(const fs::path& model, const fs::path& file, const TypeOfMatrix& type_of) {
  const Checkpoint checkpoint = open_checkpoint(model);
  const ModelConfig& config = checkpoint.config;
  const auto number = [](auto value) { return static_cast<uint32_t>(value); };
  GgufBuilder builder;
  builder.text("general.architecture", "llama")
      .number("llama.embedding_length", number(config.hidden_size))
      .number("llama.feed_forward_length", number(config.intermediate_size))
      .number("llama.block_count", number(config.layers))
      .number("llama.attention.head_count", number(config.heads))
      .number("llama.attention.head_count_kv", number(config.kv_heads))
      .number("llama.attention.key_length", number(config.head_dim))
      .number("llama.attention.layer_norm_rms_epsilon", config.rms_norm_epsilon)
      .number("llama.rope.freq_base", config.rope_theta)
      .number("llama.context_length", number(config.context));
  add_vocabulary(parse_sentencepiece_model(read_file(model / "tokenizer.model"), "tokenizer.model"), builder);
  for (const auto& [name, view] : checkpoint.tensors) {
    NamedTensor tensor{name, view.shape, {}};
    tensor.values.resize(static_cast<size_t>(view.rows() * view.columns()));
    for (int64_t row = 0; row < view.rows(); ++row) {
      const auto columns = static_cast<size_t>(view.columns());
      view.read_row(row, std::span(tensor.values).subspan(static_cast<size_t>(row) * columns, columns));
    }
    if (name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos) {
      tensor.values = interleave_rows(tensor, config.head_dim);
    }
    const DType stored = tensor.shape.size() == 1 ? DType::kF32 : type_of(name, config.layers);
    builder.tensor(gguf_tensor_name(name), tensor.shape, stored, encode(stored, tensor.values));
  }
  std::ofstream(file, std::ios::binary) << builder.build();
}

const fs::path& draft_gguf() {
  static const TemporaryFolder folder;
  static const fs::path file = [] {
    fs::path path = folder.path() / "draft-f32.gguf";
    write_trained_gguf(draft_model(), path, DType::kF32);
    return path;
  }();
  return file;
}

}  // namespace verbatim::test
