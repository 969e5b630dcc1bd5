#include "model/weights.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace verbatim {

namespace {

/// A slice of the rows of a packed matrix that comes from one tensor.
struct Part {
  std::string name;
  const TensorView* tensor = nullptr;
  bool interleaved = false;  // its heads' rows are in rotation pairs and must be brought into halves
};

class Packer {
 public:
  Packer(const Checkpoint& checkpoint, const LoadOptions& options, ThreadTeam& team,
         std::vector<std::string>& warnings)
      : checkpoint_(checkpoint), options_(options), team_(team), warnings_(warnings) {
    // Two matrices in each half of a layer, and the head.
    total_ = 4 * checkpoint.config.layers + 1;
  }

  Part part(const std::string& name, int64_t rows, int64_t columns, bool interleaved = false) const {
    return {name, &checkpoint_.tensor(name, {rows, columns}), interleaved};
  }

  LinearWeight pack(const std::vector<Part>& parts) {
    int64_t columns = 0;
    for (const Part& part : parts) columns += part.tensor->rows();
    const int64_t k = parts.front().tensor->columns();
    PackOptions pack_options;
    pack_options.mxfp4 = options_.mxfp4;
    pack_options.full = full_format(parts);
    PackResult result = pack_linear(
        columns, k,
        [&](int64_t column, std::span<float> row) {
          for (const Part& part : parts) {
            if (column < part.tensor->rows()) {
              part.tensor->read_row(source_row(part, column), row);
              return;
            }
            column -= part.tensor->rows();
          }
        },
        pack_options, team_);
    if (!result.finite) {
      for (const Part& part : parts) warn_unless_finite(part);
    }
    ++done_;
    if (options_.progress) options_.progress(static_cast<double>(done_) / total_);
    return std::move(result.weight);
  }

  /// A vector of floats, zero-padded so that kernels may read whole steps.
  Buffer<float> vector(const std::string& name, int64_t length) {
    const TensorView& tensor = checkpoint_.tensor(name, {length});
    Buffer<float> values(static_cast<size_t>(round_up(length, kInnerStep)));
    tensor.read_row(0, values.span().first(static_cast<size_t>(length)));
    if (!all_finite(values.span())) warn(name);
    return values;
  }

  Buffer<float> qkv_bias(const std::string& prefix) {
    const ModelConfig& config = checkpoint_.config;
    const int64_t query_rows = int64_t{config.heads} * config.head_dim;
    const int64_t kv_rows = int64_t{config.kv_heads} * config.head_dim;
    Buffer<float> bias(static_cast<size_t>(round_up(query_rows + 2 * kv_rows, kInnerStep)));
    int64_t offset = 0;
    for (const char* which : {"q", "k", "v"}) {
      const int64_t rows = *which == 'q' ? query_rows : kv_rows;
      const std::string name = prefix + which + "_proj.bias";
      const Buffer<float> values = vector(name, rows);
      const Part part{name, nullptr, config.rope_interleaved && *which != 'v'};
      for (int64_t r = 0; r < rows; ++r) {
        bias[static_cast<size_t>(offset + r)] = values[static_cast<size_t>(source_row(part, r))];
      }
      offset += rows;
    }
    return bias;
  }

 private:
  /// The row of the tensor that becomes output column `column` of its part. Where rotation pairs are
  /// neighbours in the file, pair j of a head is rows 2j and 2j + 1; the engine rotates rows j and half + j.
  int64_t source_row(const Part& part, int64_t column) const {
    if (!part.interleaved) return column;
    const int64_t head_dim = checkpoint_.config.head_dim;
    const int64_t half = head_dim / 2;
    const int64_t head = column / head_dim;
    const int64_t within = column % head_dim;
    return head * head_dim + within % half * 2 + within / half;
  }

  /// The narrowest format that holds every part exactly.
  static FullFormat full_format(const std::vector<Part>& parts) {
    const auto all_are = [&](DType dtype) {
      return std::all_of(parts.begin(), parts.end(), [&](const Part& p) { return p.tensor->dtype == dtype; });
    };
    if (all_are(DType::kBF16)) return FullFormat::kBf16;
    if (all_are(DType::kF16)) return FullFormat::kF16;
    return FullFormat::kF32;
  }

  static bool all_finite(std::span<const float> values) {
    return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
  }

  void warn(const std::string& name) {
    warnings_.push_back(
        fmt::format("{}: tensor {} holds NaN or infinite values; what the model says is not to be trusted",
                    checkpoint_.path.string(), name));
  }

  void warn_unless_finite(const Part& part) {
    std::vector<float> row(static_cast<size_t>(part.tensor->columns()));
    for (int64_t r = 0; r < part.tensor->rows(); ++r) {
      part.tensor->read_row(r, row);
      if (!all_finite(row)) {
        warn(part.name);
        return;
      }
    }
  }

  const Checkpoint& checkpoint_;
  const LoadOptions& options_;
  ThreadTeam& team_;
  std::vector<std::string>& warnings_;
  int done_ = 0;
  int total_ = 0;
};

LayerWeights pack_layer(Packer& packer, const ModelConfig& config, int32_t index) {
  const std::string prefix = fmt::format("model.layers.{}.", index);
  const std::string attention = prefix + "self_attn.";
  const int64_t hidden = config.hidden_size;
  const int64_t query_rows = int64_t{config.heads} * config.head_dim;
  const int64_t kv_rows = int64_t{config.kv_heads} * config.head_dim;
  LayerWeights layer;
  layer.attention_norm = packer.vector(prefix + "input_layernorm.weight", hidden);
  layer.qkv =
      packer.pack({packer.part(attention + "q_proj.weight", query_rows, hidden, config.rope_interleaved),
                   packer.part(attention + "k_proj.weight", kv_rows, hidden, config.rope_interleaved),
                   packer.part(attention + "v_proj.weight", kv_rows, hidden)});
  if (config.qkv_bias) layer.qkv_bias = packer.qkv_bias(attention);
  layer.output = packer.pack({packer.part(attention + "o_proj.weight", hidden, query_rows)});
  layer.mlp_norm = packer.vector(prefix + "post_attention_layernorm.weight", hidden);
  layer.gate_up = packer.pack({packer.part(prefix + "mlp.gate_proj.weight", config.intermediate_size, hidden),
                               packer.part(prefix + "mlp.up_proj.weight", config.intermediate_size, hidden)});
  layer.down = packer.pack({packer.part(prefix + "mlp.down_proj.weight", hidden, config.intermediate_size)});
  return layer;
}

}  // namespace

DecoderWeights pack_weights(const Checkpoint& checkpoint, const LoadOptions& options, ThreadTeam& team,
                            std::vector<std::string>& warnings) {
  const ModelConfig& config = checkpoint.config;
  const std::string embedding_name = "model.embed_tokens.weight";
  Packer packer(checkpoint, options, team, warnings);
  DecoderWeights weights;
  weights.embedding = checkpoint.tensor(embedding_name, {config.vocab_size, config.hidden_size});
  weights.files = checkpoint.files;
  for (int32_t i = 0; i < config.layers; ++i) weights.layers.push_back(pack_layer(packer, config, i));
  weights.final_norm = packer.vector("model.norm.weight", config.hidden_size);
  weights.head = packer.pack({packer.part(config.tied_embeddings ? embedding_name : "lm_head.weight",
                                          config.vocab_size, config.hidden_size)});
  return weights;
}

}  // namespace verbatim
