#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace verbatim {

/// The tensors of single experts ("blk.0.ffn_gate.3.weight", as old files call them) that a tensor stacks
/// ("blk.0.ffn_gate_exps.weight"); the tensor alone, if it is no stack. Throws Error(kBadInput), naming
/// `where`, for a stack of another number of matrices than the config has experts.
std::vector<std::pair<std::string, TensorView>> split_experts(const std::string& name,
                                                              const TensorView& tensor,
                                                              const ModelConfig& config,
                                                              const std::string& where);

/// The Hugging Face name, after the layer's, of a tensor of a mixture of experts: of the router
/// ("ffn_gate_inp.weight") or of an expert's matrix ("ffn_gate.3.weight"). Nothing for other tensors.
std::optional<std::string> expert_tensor_name(std::string_view rest, const ModelConfig& config);

/// The expert whose matrix or bias a tensor with this Hugging Face name is; nothing for other tensors.
std::optional<int64_t> expert_of(std::string_view name, const ModelConfig& config);

}  // namespace verbatim
