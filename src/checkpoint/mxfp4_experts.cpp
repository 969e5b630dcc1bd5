#include "checkpoint/mxfp4_experts.h"

#include "base/error.h"
#include "checkpoint/expert_names.h"

namespace verbatim {

namespace {

constexpr int64_t kGroup = 32;

/// A part of the bytes of a stack that holds as many bytes for each expert.
std::span<const std::byte> part_of(const TensorView& stack, int64_t expert) {
  const size_t bytes = stack.data.size() / static_cast<size_t>(stack.shape.front());
  return stack.data.subspan(static_cast<size_t>(expert) * bytes, bytes);
}

/// Checks that a tensor of codes or scales has bytes, as another type could be of the same shape.
void require_bytes(const Checkpoint& checkpoint, const TensorView& tensor, const std::string& name) {
  if (tensor.dtype == DType::kU8) return;
  bad_input("{}: tensor {} has the type {} but should have U8", checkpoint.path.string(), name,
            dtype_name(tensor.dtype));
}

/// The matrices of all experts of a layer that are called `matrix`, of rows × columns.
void split(Checkpoint& checkpoint, const std::string& layer, std::string_view matrix, int64_t rows,
           int64_t columns) {
  const ExpertNames names = expert_names(checkpoint.config);
  const int64_t experts = checkpoint.config.experts.count;
  const std::string stem = fmt::format("{}{}experts.{}", layer, names.part, matrix);
  if (checkpoint.has(stem)) {
    bad_input("{}: {} is not in MXFP4; experts of a gpt_oss in other types are not supported in safetensors",
              checkpoint.path.string(), stem);
  }
  const int64_t groups = columns / kGroup;
  const TensorView codes = checkpoint.tensor(stem + "_blocks", {experts, rows, groups, kGroup / 2});
  const TensorView scales = checkpoint.tensor(stem + "_scales", {experts, rows, groups});
  const TensorView bias = checkpoint.tensor(stem + "_bias", {experts, rows});
  require_bytes(checkpoint, codes, stem + "_blocks");
  require_bytes(checkpoint, scales, stem + "_scales");
  for (const char* end : {"_blocks", "_scales", "_bias"}) checkpoint.tensors.erase(stem + end);
  for (int64_t e = 0; e < experts; ++e) {
    checkpoint.tensors[layer + names.weight(e, matrix)] = {.dtype = DType::kMXFP4Apart,
                                                           .shape = {rows, columns},
                                                           .data = part_of(codes, e),
                                                           .scales = part_of(scales, e)};
    checkpoint.tensors[layer + names.bias(e, matrix)] = {
        .dtype = bias.dtype, .shape = {rows}, .data = part_of(bias, e)};
  }
}

}  // namespace

void split_mxfp4_experts(Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config;
  const int64_t hidden = config.hidden_size;
  const int64_t inner = config.experts.intermediate_size;
  if (hidden % kGroup != 0 || inner % kGroup != 0) {
    bad_input("{}: MXFP4 needs sizes that are multiples of {}, not {} and {}", checkpoint.path.string(),
              kGroup, hidden, inner);
  }
  for (int32_t i = 0; i < config.layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    split(checkpoint, layer, "gate_up_proj", 2 * inner, hidden);
    split(checkpoint, layer, "down_proj", hidden, inner);
  }
}

}  // namespace verbatim
