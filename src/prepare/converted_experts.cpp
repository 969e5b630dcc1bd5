#include "prepare/converted_experts.h"

#include <map>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/expert_names.h"
#include "checkpoint/gguf_experts.h"
#include "checkpoint/tensor_names.h"

namespace verbatim {

namespace {

using Rows = ConvertedTensor::Rows;
using Part = ConvertedTensor::Part;

/// The tensor in a GGUF file that a tensor of an expert goes to, and which of its rows do.
struct Target {
  std::string name;
  Rows rows = Rows::kStay;
};

/// The targets of a tensor of an expert. One of gate and up, whose rows take turns, has two.
std::vector<Target> targets_of(const std::string& name, const Checkpoint& checkpoint) {
  const ExpertNames names = expert_names(checkpoint.config);
  const size_t both = name.rfind(fmt::format(".{}.", names.gate_up));
  if (!checkpoint.config.fused_gate_up || both == std::string::npos) {
    return {{gguf_name_of(name, checkpoint), Rows::kStay}};
  }
  const auto target = [&](std::string_view matrix) {
    std::string single = name;
    single.replace(both + 1, names.gate_up.size(), matrix);
    return gguf_name_of(single, checkpoint);
  };
  return {{target(names.gate), Rows::kEven}, {target(names.up), Rows::kOdd}};
}

/// A bias as a matrix of one column, so that its numbers are rows as those of its matrix are.
TensorView as_column(TensorView tensor) {
  if (tensor.shape.size() == 1) tensor.shape.push_back(1);
  return tensor;
}

/// The stack that an expert's tensor is the first one of.
ConvertedTensor new_stack(const std::string& name, const TensorView& tensor, const Target& target,
                          const Checkpoint& checkpoint) {
  const int64_t count = checkpoint.config.experts.count;
  const bool small = is_small(name, tensor, checkpoint);
  const DType dtype = tensor.dtype == DType::kMXFP4Apart ? DType::kMXFP4 : tensor.dtype;
  std::vector<int64_t> shape = tensor.shape;
  if (target.rows != Rows::kStay) shape.front() /= 2;
  shape.insert(shape.begin(), count);
  return {.entry = {.name = target.name, .dtype = small ? DType::kF32 : dtype, .shape = shape},
          .sources = std::vector<TensorView>(static_cast<size_t>(count), as_column(tensor)),
          .source_name = name,
          .small = small,
          .rows = target.rows};
}

/// A part of what a folder's tensor of all experts of a layer is made of: its tensors' names, and their rows.
struct FolderStack {
  std::string stem;
  std::vector<std::string> weights = {};
  std::vector<std::string> biases = {};
  Rows rows = Rows::kStay;
  int64_t height = 0;  ///< the rows of all sources of an expert
  int64_t width = 0;
};

FolderStack folder_stack(const ModelConfig& config, int32_t layer, bool down) {
  const ExpertNames names = expert_names(config);
  const std::string prefix = tensor_names(config).layer(layer);
  const int64_t hidden = config.hidden_size;
  const int64_t inner = config.experts.intermediate_size;
  FolderStack stack{
      .stem = fmt::format("{}{}experts.{}", prefix, names.part, down ? names.down : names.gate_up),
      .rows = down ? Rows::kStay : Rows::kTakeTurns,
      .height = down ? hidden : 2 * inner,
      .width = down ? inner : hidden};
  for (int32_t e = 0; e < config.experts.count; ++e) {
    for (const std::string_view matrix : down ? std::vector{names.down} : std::vector{names.gate, names.up}) {
      stack.weights.push_back(prefix + names.weight(e, matrix));
      stack.biases.push_back(prefix + names.bias(e, matrix));
    }
  }
  return stack;
}

/// The tensors with these names. Throws Error(kBadInput), naming one that is not of a type.
template <typename HasType>
std::vector<TensorView> sources_of(const Checkpoint& checkpoint, const std::vector<std::string>& names,
                                   const char* types, HasType&& has_type) {
  std::vector<TensorView> sources;
  for (const std::string& name : names) {
    const TensorView& tensor = checkpoint.tensors.at(name);
    if (!has_type(tensor.dtype)) {
      bad_input("{}: tensor {} is in {}; a folder has those of a gpt_oss's experts in {} alone",
                checkpoint.path.string(), printable(name), dtype_name(tensor.dtype), types);
    }
    sources.push_back(as_column(tensor));
  }
  return sources;
}

void add_folder_stack(const Checkpoint& checkpoint, const FolderStack& stack, DType main,
                      std::vector<ConvertedTensor>& tensors) {
  constexpr int64_t kGroup = 32;  // the weights that share a scale
  const int64_t count = checkpoint.config.experts.count;
  const int64_t groups = stack.width / kGroup;
  // They are found first: what is thrown between the parts of a tensor would free its name and shape twice
  // with GCC 12.
  std::vector<TensorView> weights =
      sources_of(checkpoint, stack.weights, "MXFP4", [](DType dtype) { return dtype == DType::kMXFP4; });
  std::vector<TensorView> numbers = sources_of(checkpoint, stack.biases, "F32, F16 or BF16",
                                               [](DType dtype) { return dtype <= DType::kBF16; });
  ConvertedTensor made{.entry = {.name = stack.stem + "_blocks",
                                 .dtype = DType::kU8,
                                 .shape = {count, stack.height, groups, kGroup / 2}},
                       .sources = std::move(weights),
                       .source_name = stack.weights.front(),
                       .rows = stack.rows,
                       .part = Part::kMxfp4Codes};
  tensors.push_back(made);
  made.entry = {.name = stack.stem + "_scales", .dtype = DType::kU8, .shape = {count, stack.height, groups}};
  made.part = Part::kMxfp4Scales;
  tensors.push_back(std::move(made));
  ConvertedTensor biases{
      .entry = {.name = stack.stem + "_bias", .dtype = DType::kF32, .shape = {count, stack.height}},
      .sources = std::move(numbers),
      .source_name = stack.biases.front(),
      .small = true,
      .rows = stack.rows};
  if (main != DType::kF32 && fits(biases, main)) biases.entry.dtype = main;
  tensors.push_back(std::move(biases));
}

}  // namespace

std::vector<ConvertedTensor> gguf_experts(const Checkpoint& checkpoint) {
  std::map<std::string, ConvertedTensor> stacks;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const std::optional<int64_t> expert = expert_of(name, checkpoint.config);
    if (!expert) continue;
    require_gguf_type(name, tensor, checkpoint);
    for (const Target& target : targets_of(name, checkpoint)) {
      if (!stacks.contains(target.name)) {
        stacks[target.name] = new_stack(name, tensor, target, checkpoint);
      }
      ConvertedTensor& stack = stacks[target.name];
      const DType type = stack.sources.front().dtype;
      if (!stack.small && tensor.dtype != type) {
        bad_input("{}: tensor {} is in {}, that of another expert in {}; a GGUF file has one type for all",
                  checkpoint.path.string(), printable(stack.source_name), dtype_name(type),
                  dtype_name(tensor.dtype));
      }
      stack.sources[static_cast<size_t>(*expert)] = as_column(tensor);
    }
  }
  std::vector<ConvertedTensor> tensors;
  for (auto& [name, stack] : stacks) tensors.push_back(std::move(stack));
  return tensors;
}

bool folder_stacks_experts(const ModelConfig& config) {
  return config.architecture == Architecture::kGptOss;
}

std::vector<ConvertedTensor> folder_experts(const Checkpoint& checkpoint, DType main) {
  std::vector<ConvertedTensor> tensors;
  for (int32_t layer = 0; layer < checkpoint.config.layers; ++layer) {
    for (const bool down : {false, true}) {
      add_folder_stack(checkpoint, folder_stack(checkpoint.config, layer, down), main, tensors);
    }
  }
  return tensors;
}

}  // namespace verbatim
