#include "model/weights.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "checkpoint/block_norms.h"
#include "checkpoint/expert_names.h"
#include "checkpoint/tensor_names.h"
#include "formats/k_quants.h"
#include "formats/pack_linear.h"
#include "formats/tile_codes.h"

namespace verbatim {

namespace {

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

/// The number of elements of a head, and that of its first ones, which are rotated.
struct HeadSizes {
  int64_t all;
  int64_t rotated;
};
HeadSizes head_sizes(const ModelConfig& config) {
  return {config.head_dim, rotated_elements(config)};
}

/// The row of the tensor that becomes output column `column` of its part. Where rotation pairs are neighbours
/// in the file, pair j of a head is rows 2j and 2j + 1; the engine rotates rows j and half + j.
int64_t source_row(const WeightPart& part, HeadSizes head, int64_t column) {
  const int64_t within = column % head.all;
  if (!part.interleaved || within >= head.rotated) return column;
  const int64_t half = head.rotated / 2;
  return column - within + within % half * 2 + within / half;
}

/// The rows of a matrix that is made of several tensors.
class StackedTensors {
 public:
  void add(const WeightPart* part, const TensorView& tensor) { tensors_.push_back({part, &tensor}); }

  /// Fills `row` with the weights of output column `column`. With `reorder` the rows of heads are in the
  /// engine's order.
  void read(int64_t column, HeadSizes head, bool reorder, std::span<float> row) const {
    for (const auto& [part, tensor] : tensors_) {
      if (column < part->rows) {
        const int64_t within = reorder ? source_row(*part, head, column) : column;
        tensor->read_row(part->first + within * part->step, row);
        return;
      }
      column -= part->rows;
    }
  }

  /// Fills in the codes of output column `column` and their scales.
  void read_codes(int64_t column, HeadSizes head, std::span<int8_t> codes, std::span<Float16> scales) const {
    for (const auto& [part, tensor] : tensors_) {
      if (column < part->rows) {
        return tensor->read_codes(part->first + source_row(*part, head, column) * part->step, codes, scales);
      }
      column -= part->rows;
    }
  }

  /// Fills in the blocks of output column `column`.
  void read_blocks(int64_t column, HeadSizes head, std::span<KQuantBlock> blocks) const {
    for (const auto& [part, tensor] : tensors_) {
      if (column < part->rows) {
        return tensor->read_blocks(part->first + source_row(*part, head, column) * part->step, blocks);
      }
      column -= part->rows;
    }
  }

  /// The shape of each panel's blocks, if every tensor has blocks that `k-quants` keeps and no panel would
  /// have blocks of two shapes; else nothing.
  std::vector<BlockShape> panel_shapes() const {
    std::vector<ShapedColumns> parts;
    for (const auto& [part, tensor] : tensors_) parts.push_back({part->rows, tensor->block_shape()});
    return verbatim::panel_shapes(parts);
  }

  /// Appends the names of the tensors that hold NaN or infinity.
  void find_not_finite(std::vector<std::string>& names) const {
    for (const auto& [part, tensor] : tensors_) {
      std::vector<float> row(static_cast<size_t>(tensor->columns()));
      for (int64_t r = 0; r < part->rows; ++r) {
        tensor->read_row(part->first + r * part->step, row);
        if (all_finite(row)) continue;
        if (names.empty() || names.back() != part->tensor) names.push_back(part->tensor);
        break;
      }
    }
  }

  bool all_have_codes() const {
    return std::all_of(tensors_.begin(), tensors_.end(),
                       [](const auto& entry) { return entry.second->has_codes(); });
  }

  /// Whether `mxfp4` holds all tensors exactly: whether they are in that type, and no scale is beyond those
  /// of the format. Packing may take a half, a quarter or an eighth of a tensor's scale, with larger codes.
  bool all_fit_mxfp4() const {
    const auto fits = [](std::byte scale) {
      constexpr int kLeast = 67;  // the format has scales from 64 on
      constexpr int kMost = 147;
      return static_cast<int>(scale) >= kLeast && static_cast<int>(scale) <= kMost;
    };
    return std::all_of(tensors_.begin(), tensors_.end(), [&](const auto& entry) {
      const TensorView& tensor = *entry.second;
      if (tensor.dtype == DType::kMXFP4Apart) return std::ranges::all_of(tensor.scales, fits);
      if (tensor.dtype != DType::kMXFP4) return false;
      constexpr size_t kBlock = 17;  // a scale and the codes of 32 weights
      for (size_t at = 0; at < tensor.data.size(); at += kBlock) {
        if (!fits(tensor.data[at])) return false;
      }
      return true;
    });
  }

  bool all_bf16() const {
    return std::ranges::all_of(tensors_, [](const auto& entry) { return entry.second->is_bf16(); });
  }

  /// The format of four bits that holds all tensors exactly; nothing if there is none.
  std::optional<Format> int4_format() const {
    Format format = Format::kInt4;
    for (const auto& [part, tensor] : tensors_) {
      const std::optional<Format> own = tensor->int4_format();
      if (!own) return std::nullopt;
      if (*own == Format::kInt4Asymmetric) format = *own;
    }
    return format;
  }

  bool all_nearest(DType dtype) const {
    return std::ranges::all_of(tensors_,
                               [&](const auto& entry) { return entry.second->nearest_type() == dtype; });
  }

  bool all_are(DType dtype) const {
    return std::all_of(tensors_.begin(), tensors_.end(),
                       [&](const auto& entry) { return entry.second->dtype == dtype; });
  }

 private:
  std::vector<std::pair<const WeightPart*, const TensorView*>> tensors_;
};

/// Finds the tensors that a matrix is made of, and checks that each is there in its shape.
StackedTensors stacked(const Checkpoint& checkpoint, const MatrixSpec& spec) {
  StackedTensors tensors;
  for (const WeightPart& part : spec.parts) {
    tensors.add(&part, checkpoint.tensor(part.tensor, {rows_in_file(part), spec.k}));
  }
  return tensors;
}

/// The formats to pack a matrix into. Throws Error(kBadInput) if a lossless one cannot hold the type of the
/// tensors.
std::vector<Format> chosen_formats(const StackedTensors& tensors, const MatrixSpec& spec,
                                   const Checkpoint& checkpoint, const LoadOptions& options) {
  const bool bf16 = tensors.all_bf16();
  const bool f16 = tensors.all_are(DType::kF16);
  const bool codes = tensors.all_have_codes() && !options.transform;
  const std::optional<Format> int4 = options.transform ? std::nullopt : tensors.int4_format();
  const bool blocks = !tensors.panel_shapes().empty() && !options.transform;
  const bool mxfp4 = !options.transform && tensors.all_fit_mxfp4();
  const Format own = bf16                                ? Format::kBf16
                     : f16                               ? Format::kF16
                     : int4                              ? *int4
                     : codes                             ? Format::kQ8_0
                     : blocks                            ? Format::kKQuants
                     : mxfp4                             ? Format::kMxfp4
                     : tensors.all_nearest(DType::kBF16) ? Format::kBf16
                     : tensors.all_nearest(DType::kF16)  ? Format::kF16
                                                         : Format::kF32;
  if (options.formats.empty()) return {own};
  std::vector<Format> formats;
  for (const std::optional<Format>& asked : options.formats) {
    const Format format = asked.value_or(own);
    if ((format == Format::kMxbf16 && !bf16) || (format == Format::kBsfp && !bf16 && !f16)) {
      bad_input(
          "{}: {} is not in {}, which is all that {} can hold without loss: name the format {} instead, or a "
          "recipe without it",
          checkpoint.path.string(), spec.name, format == Format::kMxbf16 ? "BF16" : "BF16 or F16",
          format_name(format), format_name(own));
    }
    // Codes of four bits would fit into q8_0, whose sums are scaled more often: other bits than their own
    // format's.
    if (format == Format::kQ8_0 && own != Format::kQ8_0) {
      bad_input(
          "{}: {} is not in codes of eight bits as Q8_0 is, which q8_0 would keep: name the format {} "
          "instead",
          checkpoint.path.string(), spec.name, format_name(own));
    }
    if (format == Format::kKQuants && !blocks) {
      bad_input(
          "{}: {} is not in blocks of Q2_K to Q6_K, which k-quants would keep: name the format {} instead",
          checkpoint.path.string(), spec.name, format_name(own));
    }
    if (std::find(formats.begin(), formats.end(), format) == formats.end()) formats.push_back(format);
  }
  // `full` reads the first format that can be lossless. It must not be one whose sums have another order than
  // the own format's (those of `mxbf16` and `bsfp` have the order of `bf16` and `f16`), nor one that rounds.
  if (own != Format::kBf16 && own != Format::kF16) {
    std::stable_partition(formats.begin(), formats.end(), [own](Format format) { return format == own; });
  }
  const auto rounds = [own](Format format) {
    return format != own && (format == Format::kBf16 || format == Format::kF16);
  };
  const auto first = std::find_if(formats.begin(), formats.end(), is_exact);
  if (first != formats.end() && rounds(*first)) {
    std::stable_partition(first, formats.end(), [&](Format format) { return !rounds(format); });
  }
  return formats;
}

int64_t rows_of(const std::vector<WeightPart>& parts) {
  int64_t sum = 0;
  for (const WeightPart& part : parts) sum += part.rows;
  return sum;
}

struct LayerNames {
  std::string attention;
  std::string layer;
  std::string engine;
};
LayerNames names_of(const ModelConfig& config, int32_t index) {
  const TensorNames names = tensor_names(config);
  const std::string layer = names.layer(index);
  return {layer + std::string(names.attention), layer, fmt::format("layers.{}.", index)};
}

/// The parts of queries, keys and values, matrices or biases. `end` is the end of the tensors' names.
std::vector<WeightPart> qkv_parts(const ModelConfig& config, const std::string& prefix,
                                  const std::string& end) {
  const int64_t query = int64_t{config.heads} * config.head_dim;
  const int64_t key = int64_t{config.kv_heads} * config.head_dim;
  const bool interleaved = config.rope_interleaved;
  if (config.fused_qkv) {
    const std::string tensor = fmt::format("{}{}{}", prefix, tensor_names(config).qkv, end);
    const int64_t all = query + 2 * key;
    return {{tensor, query, interleaved, 0, all},
            {tensor, key, interleaved, query, all},
            {tensor, key, false, query + key, all}};
  }
  return {{prefix + "q_proj" + end, query, interleaved},
          {prefix + "k_proj" + end, key, interleaved},
          {prefix + "v_proj" + end, key, false}};
}

/// The name of a matrix of the feed-forward part of a layer, or of its bias.
std::string mlp_tensor(const ModelConfig& config, const LayerNames& name, std::string_view matrix,
                       const std::string& end) {
  return fmt::format("{}{}{}{}", name.layer, tensor_names(config).mlp, matrix, end);
}

/// The parts of gate and up of a feed-forward part, matrices or biases.
std::vector<WeightPart> gate_up_parts(const ModelConfig& config, const LayerNames& name,
                                      const std::string& end) {
  const int64_t inner = config.intermediate_size;
  if (config.fused_gate_up) {
    const std::string tensor = mlp_tensor(config, name, "gate_up_proj", end);
    return {{tensor, inner, false, 0, 2 * inner}, {tensor, inner, false, inner, 2 * inner}};
  }
  const WeightPart up{mlp_tensor(config, name, tensor_names(config).up, end), inner, false};
  if (config.plain_mlp) return {up};
  return {{mlp_tensor(config, name, "gate_proj", end), inner, false}, up};
}

/// The parts of an expert's gate and up, matrices or biases. Where a checkpoint stores them as one, their
/// rows take turns.
template <typename TensorName>
std::vector<WeightPart> expert_gate_up_parts(const ModelConfig& config, TensorName&& tensor) {
  const ExpertNames names = expert_names(config);
  const int64_t inner = config.experts.intermediate_size;
  if (config.fused_gate_up) {
    const std::string both = tensor(names.gate_up);
    return {{both, inner, false, 0, 2 * inner, 2}, {both, inner, false, 1, 2 * inner, 2}};
  }
  return {{tensor(names.gate), inner, false}, {tensor(names.up), inner, false}};
}

/// Adds the matrices of the feed-forward part of a layer.
void add_feed_forward(std::vector<MatrixSpec>& specs, const ModelConfig& config, int32_t layer,
                      const LayerNames& name) {
  const int64_t hidden = config.hidden_size;
  if (!has_experts(config, layer)) {
    specs.push_back({name.engine + "gate_up", hidden, gate_up_parts(config, name, ".weight")});
    specs.push_back({name.engine + "down",
                     config.intermediate_size,
                     {{mlp_tensor(config, name, tensor_names(config).down, ".weight"), hidden, false}}});
    return;
  }
  const ExpertNames names = expert_names(config);
  const int64_t inner = config.experts.intermediate_size;
  for (int32_t e = 0; e < config.experts.count; ++e) {
    const std::string expert = fmt::format("{}experts.{}.", name.engine, e);
    const auto tensor = [&](std::string_view matrix) { return name.layer + names.weight(e, matrix); };
    specs.push_back({expert + "gate_up", hidden, expert_gate_up_parts(config, tensor)});
    specs.push_back({expert + "down", inner, {{tensor(names.down), hidden, false}}});
  }
}

/// Adds the vectors of a layer's mixture of experts.
void add_expert_vectors(std::vector<VectorSpec>& specs, const ModelConfig& config, const LayerNames& name) {
  const ExpertNames names = expert_names(config);
  VectorSpec router{name.engine + "router", {}};
  for (int32_t e = 0; e < config.experts.count; ++e) {
    router.parts.push_back({.tensor = name.layer + names.router_weight(),
                            .rows = config.hidden_size,
                            .first = e,
                            .tensor_rows = config.experts.count,
                            .of_matrix = true});
  }
  specs.push_back(std::move(router));
  if (!config.experts.biases) return;
  specs.push_back(
      {name.engine + "router_bias", {{name.layer + names.router_bias(), config.experts.count, false}}});
  for (int32_t e = 0; e < config.experts.count; ++e) {
    const std::string expert = fmt::format("{}experts.{}.", name.engine, e);
    const auto tensor = [&](std::string_view matrix) { return name.layer + names.bias(e, matrix); };
    specs.push_back({expert + "gate_up_bias", expert_gate_up_parts(config, tensor)});
    specs.push_back({expert + "down_bias", {{tensor(names.down), config.hidden_size, false}}});
  }
}

/// Splits a name "<list>.<index>.<rest>" into the element of the list and the rest. Returns null for another
/// name, or where there is no such element.
template <typename Element>
Element* element_of(std::vector<Element>& list, std::string_view prefix, const std::string& name,
                    std::string& rest) {
  if (!name.starts_with(prefix)) return nullptr;
  const size_t dot = name.find('.', prefix.size());
  const auto index = static_cast<size_t>(std::stoul(name.substr(prefix.size())));
  if (dot == std::string::npos || index >= list.size()) return nullptr;
  rest = name.substr(dot + 1);
  return &list[index];
}

LayerWeights* layer_of(DecoderWeights& weights, const std::string& name, std::string& member) {
  return element_of(weights.layers, "layers.", name, member);
}

/// The learned vectors of positions, one behind the other.
VectorSpec positions_spec(const ModelConfig& config) {
  const TensorNames names = tensor_names(config);
  VectorSpec spec{"positions", {}};
  for (int64_t position = 0; position < config.context; ++position) {
    spec.parts.push_back({.tensor = fmt::format("{}.weight", names.positions),
                          .rows = config.hidden_size,
                          .first = names.first_position + position,
                          .tensor_rows = names.first_position + config.context,
                          .of_matrix = true});
  }
  return spec;
}

}  // namespace

int64_t MatrixSpec::columns() const {
  return rows_of(parts);
}

int64_t VectorSpec::length() const {
  return rows_of(parts);
}

int64_t packed_inputs(const ModelConfig& config, int64_t inputs) {
  if (config.quantization != QuantizationScheme::kAtom) return inputs;
  return round_up(std::max<int64_t>(inputs - kOutlierInputs, 0), kScaleGroup) + 2 * kOutlierInputs;
}

std::string order_name(const std::string& matrix) {
  return matrix + "_order";
}

std::optional<int64_t> ordered_inputs(const ModelConfig& config, const std::string& vector) {
  const auto is = [&](const char* matrix) { return vector.ends_with(order_name(matrix)); };
  if (is("output")) return int64_t{config.heads} * config.head_dim;
  if (is("down")) return config.intermediate_size;
  if (is("qkv") || is("gate_up") || is("head")) return config.hidden_size;
  return std::nullopt;
}

std::vector<MatrixSpec> matrix_specs(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t query_rows = int64_t{config.heads} * config.head_dim;
  std::vector<MatrixSpec> specs;
  for (int32_t i = 0; i < config.layers; ++i) {
    const LayerNames name = names_of(config, i);
    specs.push_back({name.engine + "qkv", hidden, qkv_parts(config, name.attention, ".weight")});
    specs.push_back(
        {name.engine + "output",
         query_rows,
         {{fmt::format("{}{}.weight", name.attention, tensor_names(config).output), hidden, false}}});
    add_feed_forward(specs, config, i, name);
  }
  specs.push_back(
      {"head",
       hidden,
       {{config.tied_embeddings ? fmt::format("{}.weight", tensor_names(config).embedding) : "lm_head.weight",
         config.vocab_size, false}}});
  for (MatrixSpec& spec : specs) spec.k = packed_inputs(config, spec.k);
  return specs;
}

std::vector<VectorSpec> vector_specs(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t query_rows = int64_t{config.heads} * config.head_dim;
  const int64_t kv_rows = int64_t{config.kv_heads} * config.head_dim;
  const bool interleaved = config.rope_interleaved;
  const BlockNormNames norms = block_norm_names(config);
  const TensorNames names = tensor_names(config);
  std::vector<VectorSpec> specs;
  for (int32_t i = 0; i < config.layers; ++i) {
    const LayerNames name = names_of(config, i);
    const auto add_norm = [&](const char* engine, std::string_view norm) {
      if (norm.empty()) return;
      specs.push_back(
          {name.engine + engine, {{fmt::format("{}{}.weight", name.layer, norm), hidden, false}}});
      if (!config.layer_norm) return;
      specs.push_back({fmt::format("{}{}_bias", name.engine, engine),
                       {{fmt::format("{}{}.bias", name.layer, norm), hidden, false}}});
    };
    add_norm("attention_norm", norms.before_attention);
    add_norm("attention_end_norm", norms.after_attention);
    if (config.qkv_bias) {
      specs.push_back({name.engine + "qkv_bias", qkv_parts(config, name.attention, ".bias")});
    }
    if (config.head_norm != HeadNorm::kNone) {
      const bool whole = config.head_norm == HeadNorm::kWhole;
      specs.push_back(
          {name.engine + "query_norm",
           {{name.attention + "q_norm.weight", whole ? query_rows : config.head_dim, interleaved}}});
      specs.push_back({name.engine + "key_norm",
                       {{name.attention + "k_norm.weight", whole ? kv_rows : config.head_dim, interleaved}}});
    }
    if (config.output_bias) {
      const std::string bias = fmt::format("{}{}.bias", name.attention, names.output);
      specs.push_back({name.engine + "output_bias", {{bias, hidden, false}}});
    }
    if (config.head_sinks) {
      specs.push_back({name.engine + "head_sinks", {{name.attention + "sinks", config.heads, false}}});
    }
    add_norm("mlp_norm", norms.before_mlp);
    if (has_experts(config, i)) add_expert_vectors(specs, config, name);
    if (config.mlp_bias) {
      specs.push_back({name.engine + "gate_up_bias", gate_up_parts(config, name, ".bias")});
      specs.push_back(
          {name.engine + "down_bias", {{mlp_tensor(config, name, names.down, ".bias"), hidden, false}}});
    }
    add_norm("mlp_end_norm", norms.after_mlp);
  }
  specs.push_back({"final_norm", {{fmt::format("{}.weight", names.final_norm), hidden, false}}});
  if (config.layer_norm) {
    specs.push_back({"final_norm_bias", {{fmt::format("{}.bias", names.final_norm), hidden, false}}});
  }
  if (config.learned_positions) specs.push_back(positions_spec(config));
  if (config.norms_less_one) {
    for (VectorSpec& spec : specs) {
      if (spec.name.ends_with("norm")) spec.added = 1.0f;
    }
  }
  if (config.quantization == QuantizationScheme::kAtom) {
    for (const MatrixSpec& matrix : matrix_specs(config)) {
      specs.push_back({order_name(matrix.name), {{"", matrix.k, false}}});
    }
  }
  return specs;
}

void set_formats(LoadOptions& options, const std::vector<std::string>& names) {
  options.formats.clear();
  options.draft = false;
  for (const std::string& name : names) {
    if (name == "draft") {
      options.draft = true;
    } else {
      options.formats.push_back(name == "full" ? std::nullopt
                                               : std::optional(parse_format(name, "the formats to load")));
    }
  }
}

std::vector<LayerWeights> empty_layers(const ModelConfig& config) {
  std::vector<LayerWeights> layers(static_cast<size_t>(config.layers));
  for (int32_t i = 0; i < config.layers; ++i) {
    if (has_experts(config, i)) {
      layers[static_cast<size_t>(i)].experts.resize(static_cast<size_t>(config.experts.count));
    }
  }
  return layers;
}

LinearWeight& matrix_of(DecoderWeights& weights, const std::string& name) {
  if (name == "head") return weights.head;
  std::string member;
  if (LayerWeights* const layer = layer_of(weights, name, member)) {
    if (member == "qkv") return layer->qkv;
    if (member == "output") return layer->output;
    if (member == "gate_up") return layer->gate_up;
    if (member == "down") return layer->down;
    std::string matrix;
    if (ExpertWeights* const expert = element_of(layer->experts, "experts.", member, matrix)) {
      if (matrix == "gate_up") return expert->gate_up;
      if (matrix == "down") return expert->down;
    }
  }
  fail(ErrorKind::kUsage, "a decoder has no matrix {}", name);
}

Buffer<float>& vector_of(DecoderWeights& weights, const std::string& name) {
  if (name == "final_norm") return weights.final_norm;
  if (name == "head_order") return weights.head_order;
  if (name == "final_norm_bias") return weights.final_norm_bias;
  if (name == "positions") return weights.positions;
  std::string member;
  if (LayerWeights* const layer = layer_of(weights, name, member)) {
    if (member == "attention_norm") return layer->attention_norm;
    if (member == "attention_norm_bias") return layer->attention_norm_bias;
    if (member == "mlp_norm_bias") return layer->mlp_norm_bias;
    if (member == "gate_up_bias") return layer->gate_up_bias;
    if (member == "down_bias") return layer->down_bias;
    if (member == "attention_end_norm") return layer->attention_end_norm;
    if (member == "mlp_end_norm") return layer->mlp_end_norm;
    if (member == "qkv_bias") return layer->qkv_bias;
    if (member == "query_norm") return layer->query_norm;
    if (member == "key_norm") return layer->key_norm;
    if (member == "mlp_norm") return layer->mlp_norm;
    if (member == "router") return layer->router;
    if (member == "router_bias") return layer->router_bias;
    if (member == "output_bias") return layer->output_bias;
    if (member == "head_sinks") return layer->head_sinks;
    std::string vector;
    if (ExpertWeights* const expert = element_of(layer->experts, "experts.", member, vector)) {
      if (vector == "gate_up_bias") return expert->gate_up_bias;
      if (vector == "down_bias") return expert->down_bias;
    }
    if (member == "qkv_order") return layer->qkv_order;
    if (member == "output_order") return layer->output_order;
    if (member == "gate_up_order") return layer->gate_up_order;
    if (member == "down_order") return layer->down_order;
  }
  fail(ErrorKind::kUsage, "a decoder has no vector {}", name);
}

int64_t rows_in_file(const WeightPart& part) {
  return part.tensor_rows > 0 ? part.tensor_rows : part.rows;
}

TensorRow hugging_face_row(const ModelConfig& config, const MatrixSpec& spec, int64_t column) {
  const bool reorder = hugging_face_interleaves(config.architecture);
  for (const WeightPart& part : spec.parts) {
    if (column < part.rows) {
      const int64_t within = reorder ? source_row(part, head_sizes(config), column) : column;
      return {&part, part.first + within * part.step};
    }
    column -= part.rows;
  }
  fail(ErrorKind::kUsage, "{} has {} columns fewer than were asked for", spec.name, column + 1);
}

MatrixRows matrix_rows(const Checkpoint& checkpoint, const MatrixSpec& spec) {
  return [tensors = stacked(checkpoint, spec), head = head_sizes(checkpoint.config)](
             int64_t column, std::span<float> row) { tensors.read(column, head, true, row); };
}

MatrixRows sensitivity_rows(const ModelConfig& config, const SensitivityFile& file, const MatrixSpec& spec) {
  if (spec.name == "head" && !file.has(spec.parts.front().tensor)) return {};
  StackedTensors tensors;
  for (const WeightPart& part : spec.parts) {
    const int64_t shape[] = {rows_in_file(part), spec.k};
    tensors.add(&part, file.tensor(part.tensor, shape));
  }
  // A file of sensitivities is in the order of Hugging Face models.
  return [tensors, head = head_sizes(config), reorder = hugging_face_interleaves(config.architecture)](
             int64_t column, std::span<float> row) { tensors.read(column, head, reorder, row); };
}

LinearWeight pack_matrix(const Checkpoint& checkpoint, const MatrixSpec& spec, const LoadOptions& options,
                         ThreadTeam& team, std::vector<std::string>& not_finite) {
  const HeadSizes head = head_sizes(checkpoint.config);
  const StackedTensors tensors = stacked(checkpoint, spec);
  PackLinearOptions pack_options;
  if (options.sensitivities != nullptr) {
    pack_options.sensitivities = sensitivity_rows(checkpoint.config, *options.sensitivities, spec);
  }
  pack_options.formats = chosen_formats(tensors, spec, checkpoint, options);
  pack_options.element = tensors.all_are(DType::kF16) ? Element::kF16 : Element::kBf16;
  pack_options.sparse = options.sparse;
  if (const auto found = options.outlier_magnitudes.find(spec.name);
      found != options.outlier_magnitudes.end()) {
    pack_options.sparse.magnitude = found->second;
  }
  const std::optional<Format> int4 = options.transform ? std::nullopt : tensors.int4_format();
  pack_options.codes_of_int4 = int4.has_value();
  if (tensors.all_have_codes() && !options.transform) {
    pack_options.codes = [&](int64_t column, std::span<int8_t> codes, std::span<Float16> scales) {
      tensors.read_codes(column, head, codes, scales);
    };
  }
  if (!options.transform) {
    pack_options.blocks.shapes = tensors.panel_shapes();
    if (!pack_options.blocks.shapes.empty()) {
      pack_options.blocks.read = [&](int64_t column, std::span<KQuantBlock> blocks) {
        tensors.read_blocks(column, head, blocks);
      };
    }
  }
  const MatrixRows own = [&](int64_t column, std::span<float> row) { tensors.read(column, head, true, row); };
  const MatrixRows read =
      options.transform ? options.transform(spec.columns(), spec.k, own, pack_options.sensitivities, team)
                        : own;
  PackResult result = pack_linear(spec.columns(), spec.k, read, pack_options, team);
  if (options.draft && !draft_reading(result.weight)) {
    pack_options.formats = {Format::kMxfp4};
    PackResult copy = pack_linear(spec.columns(), spec.k, read, pack_options, team);
    result.weight.stores.push_back(std::move(copy.weight.stores.front()));
  }
  for (PackedMatrix& store : result.weight.stores) {
    store.own = store.format == Format::kMxfp4 && !options.transform && tensors.all_fit_mxfp4();
    if (int4) store.own = store.own || store.format == *int4 || store.format == Format::kInt4Asymmetric;
  }
  if (!result.finite) tensors.find_not_finite(not_finite);
  return std::move(result.weight);
}

Buffer<float> read_vector(const Checkpoint& checkpoint, const VectorSpec& spec,
                          std::vector<std::string>& not_finite) {
  Buffer<float> values(static_cast<size_t>(round_up(spec.length(), kInnerStep)));
  const HeadSizes head = head_sizes(checkpoint.config);
  size_t offset = 0;
  for (const WeightPart& part : spec.parts) {
    const TensorView& tensor = part.of_matrix ? checkpoint.tensor(part.tensor, {part.tensor_rows, part.rows})
                                              : checkpoint.tensor(part.tensor, {rows_in_file(part)});
    std::vector<float> stored(static_cast<size_t>(tensor.columns()));
    tensor.read_row(part.of_matrix ? part.first : 0, stored);
    const int64_t first = part.of_matrix ? 0 : part.first;
    if (!all_finite(stored) && (not_finite.empty() || not_finite.back() != part.tensor)) {
      not_finite.push_back(part.tensor);
    }
    for (int64_t r = 0; r < part.rows; ++r) {
      values[offset + static_cast<size_t>(r)] =
          stored[static_cast<size_t>(first + source_row(part, head, r) * part.step)] + spec.added;
    }
    offset += static_cast<size_t>(part.rows);
  }
  return values;
}

std::vector<std::string> not_finite_warning(std::span<const std::string> tensors) {
  if (tensors.empty()) return {};
  constexpr size_t kNamed = 2;
  std::string names = tensors[0];
  for (size_t i = 1; i < std::min(kNamed, tensors.size()); ++i) names += ", " + tensors[i];
  if (tensors.size() > kNamed) names += fmt::format(" and {} more", tensors.size() - kNamed);
  return {fmt::format("{} {} NaN or infinite values; what the model says is not to be trusted",
                      tensors.size() == 1 ? "tensor " + names : "the tensors " + names,
                      tensors.size() == 1 ? "holds" : "hold")};
}

TensorView embedding_of(const Checkpoint& checkpoint) {
  return checkpoint.tensor(fmt::format("{}.weight", tensor_names(checkpoint.config).embedding),
                           {checkpoint.config.vocab_size, checkpoint.config.hidden_size});
}

double bits_per_weight(const DecoderWeights& weights, Reading reading) {
  int64_t bytes = 0;
  int64_t count = 0;
  const auto add = [&](const LinearWeight& matrix) {
    const PackedMatrix& store = matrix.store(reading);
    bytes += operations(store.format).bytes_read(store, matrix.resolve(reading));
    count += matrix.columns * matrix.k;
  };
  each_matrix(weights, add);
  return 8.0 * static_cast<double>(bytes) / static_cast<double>(count);
}

DecoderWeights pack_weights(const Checkpoint& checkpoint, const LoadOptions& options, ThreadTeam& team,
                            std::vector<std::string>& not_finite) {
  DecoderWeights weights;
  weights.embedding = embedding_of(checkpoint);
  weights.files = checkpoint.files;
  weights.layers = empty_layers(checkpoint.config);
  for (const VectorSpec& spec : vector_specs(checkpoint.config)) {
    vector_of(weights, spec.name) = read_vector(checkpoint, spec, not_finite);
  }
  const std::vector<MatrixSpec> specs = matrix_specs(checkpoint.config);
  size_t done = 0;
  for (const MatrixSpec& spec : specs) {
    matrix_of(weights, spec.name) = pack_matrix(checkpoint, spec, options, team, not_finite);
    ++done;
    if (options.progress) options.progress(static_cast<double>(done) / static_cast<double>(specs.size()));
  }
  return weights;
}

}  // namespace verbatim
