#include "tools/memory_estimate.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "attention/attention.h"
#include "base/matrix.h"
#include "checkpoint/expert_names.h"
#include "checkpoint/tensor_names.h"
#include "engine/memory_check.h"
#include "formats/k_quants.h"
#include "formats/tile_codes.h"
#include "kernels/kernel_table.h"
#include "tools/inspect_packed.h"

namespace verbatim {

namespace {

int64_t mxfp4_bytes(int64_t weights) {
  return weights / 2 + weights / kInnerStep;
}

/// Whether tensors are in MXFP4, which `mxfp4` keeps as it is.
bool in_mxfp4(const std::vector<const TensorView*>& parts) {
  return std::all_of(parts.begin(), parts.end(), [](const TensorView* part) {
    return part->dtype == DType::kMXFP4 || part->dtype == DType::kMXFP4Apart;
  });
}

/// The shape of each panel's blocks in `k-quants`; nothing where that format cannot hold the tensors.
std::vector<BlockShape> block_shapes(const std::vector<const TensorView*>& parts) {
  std::vector<ShapedColumns> columns;
  for (const TensorView* const part : parts) columns.push_back({part->rows(), part->block_shape()});
  return panel_shapes(columns);
}

bool in_int4(const std::vector<const TensorView*>& parts) {
  return std::ranges::all_of(parts, [](const TensorView* part) { return part->int4_format().has_value(); });
}

/// Whether a store of the tensors' own type holds drafts, so that no copy is packed for them.
bool hold_drafts(const std::vector<const TensorView*>& parts) {
  const auto q8_0 = [](const TensorView* part) { return part->dtype == DType::kQ8_0; };
  return in_mxfp4(parts) || in_int4(parts) || std::ranges::all_of(parts, q8_0) ||
         !block_shapes(parts).empty();
}

/// The bytes of weights in the format of their own type.
int64_t full_bytes(const std::vector<const TensorView*>& parts, int64_t weights) {
  const auto all_are = [&](DType dtype) {
    return std::all_of(parts.begin(), parts.end(),
                       [&](const TensorView* part) { return part->dtype == dtype; });
  };
  const bool bf16 = std::ranges::all_of(parts, [](const TensorView* part) { return part->is_bf16(); });
  if (bf16 || all_are(DType::kF16)) return weights * 2;
  if (in_mxfp4(parts)) return mxfp4_bytes(weights);
  if (in_int4(parts)) {
    const auto symmetric = [](const TensorView* part) { return part->int4_format() == Format::kInt4; };
    const int64_t k = round_up(parts.front()->columns(), kInnerStep);
    const int64_t groups = weights / k * ceil_div(k, kScaleGroup);
    return weights / 2 + groups * (std::ranges::all_of(parts, symmetric) ? 2 : 3);
  }
  const bool codes =
      std::all_of(parts.begin(), parts.end(), [](const TensorView* part) { return part->has_codes(); });
  if (codes) return weights + weights / kInnerStep * 2;
  for (const DType nearest : {DType::kBF16, DType::kF16}) {
    const auto agrees = [&](const TensorView* part) { return part->nearest_type() == nearest; };
    if (std::ranges::all_of(parts, agrees)) return weights * 2;
  }
  const std::vector<BlockShape> shapes = block_shapes(parts);
  if (shapes.empty()) return weights * 4;
  int64_t bytes = 0;
  for (const BlockShape shape : shapes)
    bytes += panel_bytes(shape, parts.front()->columns()) + int64_t{sizeof(uint64_t)};
  return bytes;
}

/// The share of a model's experts that a token goes through.
double expert_share(const ModelConfig& config) {
  return static_cast<double>(config.experts.used) / static_cast<double>(config.experts.count);
}

/// Adds a matrix that is packed from tensors one below the other. `share` is the share of passes that read
/// it.
void add_matrix(MemoryEstimate& estimate, const Checkpoint& checkpoint, const std::vector<std::string>& names,
                double share = 1.0) {
  std::vector<const TensorView*> parts;
  int64_t columns = 0;
  for (const std::string& name : names) {
    parts.push_back(&checkpoint.tensors.at(name));
    columns += parts.back()->rows();
  }
  const int64_t k = round_up(parts.front()->columns(), kInnerStep);
  const int64_t weights = round_up(columns, kPanelWidth) * k;
  const int64_t bytes = full_bytes(parts, weights);
  estimate.full += bytes;
  estimate.weights += weights;
  estimate.pass += static_cast<int64_t>(share * static_cast<double>(bytes));
  if (!hold_drafts(parts)) estimate.mxfp4 += mxfp4_bytes(weights);
}

/// Adds the matrices of the feed-forward part of a layer.
void add_feed_forward(MemoryEstimate& estimate, const Checkpoint& checkpoint, int32_t layer) {
  const ModelConfig& config = checkpoint.config;
  const TensorNames tensors = tensor_names(config);
  const std::string prefix = tensors.layer(layer);
  if (has_experts(config, layer)) {
    const ExpertNames names = expert_names(config);
    const double share = expert_share(config);
    for (int32_t e = 0; e < config.experts.count; ++e) {
      if (config.fused_gate_up) {
        add_matrix(estimate, checkpoint, {prefix + names.weight(e, names.gate_up)}, share);
      } else {
        add_matrix(estimate, checkpoint,
                   {prefix + names.weight(e, names.gate), prefix + names.weight(e, names.up)}, share);
      }
      add_matrix(estimate, checkpoint, {prefix + names.weight(e, names.down)}, share);
    }
    return;
  }
  const auto name = [&](std::string_view matrix) {
    return fmt::format("{}{}{}.weight", prefix, tensors.mlp, matrix);
  };
  if (config.fused_gate_up) {
    add_matrix(estimate, checkpoint, {name("gate_up_proj")});
  } else if (config.plain_mlp) {
    add_matrix(estimate, checkpoint, {name(tensors.up)});
  } else {
    add_matrix(estimate, checkpoint, {name("gate_proj"), name(tensors.up)});
  }
  add_matrix(estimate, checkpoint, {name(tensors.down)});
}

/// The part that the config alone decides: the keys and values.
MemoryEstimate estimate_cache(const ModelConfig& config) {
  MemoryEstimate estimate;
  estimate.kv_per_token = dense_cache_bytes(config, kAttentionChunk) / kAttentionChunk;
  estimate.kv_context = dense_cache_bytes(config, config.context);
  return estimate;
}

}  // namespace

MemoryEstimate estimate_memory(const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config;
  const TensorNames tensors = tensor_names(config);
  MemoryEstimate estimate = estimate_cache(config);
  for (int32_t layer = 0; layer < config.layers; ++layer) {
    const std::string attention = tensors.layer(layer) + std::string(tensors.attention);
    if (config.fused_qkv) {
      add_matrix(estimate, checkpoint, {fmt::format("{}{}.weight", attention, tensors.qkv)});
    } else {
      add_matrix(estimate, checkpoint,
                 {attention + "q_proj.weight", attention + "k_proj.weight", attention + "v_proj.weight"});
    }
    add_matrix(estimate, checkpoint, {fmt::format("{}{}.weight", attention, tensors.output)});
    add_feed_forward(estimate, checkpoint, layer);
  }
  add_matrix(estimate, checkpoint,
             {config.tied_embeddings ? fmt::format("{}.weight", tensors.embedding) : "lm_head.weight"});
  return estimate;
}

MemoryEstimate estimate_memory(const Container& container) {
  MemoryEstimate estimate = estimate_cache(container.header.config);
  const ModelConfig& config = container.header.config;
  const double share = config.experts.count > 0 ? expert_share(config) : 1.0;
  for (const StoredMatrix& matrix : container.header.matrices) {
    const StoredFormat* const exact = matrix.find_exact();
    const int64_t bytes = bytes_of(exact != nullptr ? *exact : matrix.stores.front());
    const bool of_expert = matrix.name.find("experts.") != std::string::npos;
    estimate.full += bytes;
    estimate.weights += matrix.columns * matrix.k;
    estimate.pass += static_cast<int64_t>((of_expert ? share : 1.0) * static_cast<double>(bytes));
    if (const StoredFormat* const mxfp4 = matrix.find(Format::kMxfp4)) estimate.mxfp4 += bytes_of(*mxfp4);
  }
  return estimate;
}

}  // namespace verbatim
