#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "checkpoint/model_config.h"

namespace verbatim {

/// The Hugging Face names of the tensors of a mixture of experts, without the layer before them and ".weight"
/// after them.
struct ExpertNames {
  std::string_view part;  ///< the part of the layer that holds router and experts, with its dot
  std::string_view router;
  std::string_view gate;
  std::string_view up;
  std::string_view down;
  std::string_view gate_up = {};  ///< the gate and the up matrix as one, where a checkpoint stores them so

  /// The name of the router, after the layer's.
  std::string router_weight() const { return fmt::format("{}{}.weight", part, router); }
  std::string router_bias() const { return fmt::format("{}{}.bias", part, router); }
  /// The name of a matrix of an expert, after the layer's. `matrix` is gate, up, down or gate_up.
  std::string weight(int64_t expert, std::string_view matrix) const {
    return fmt::format("{}experts.{}.{}.weight", part, expert, matrix);
  }
  std::string bias(int64_t expert, std::string_view matrix) const {
    return fmt::format("{}experts.{}.{}.bias", part, expert, matrix);
  }
};

inline ExpertNames expert_names(const ModelConfig& config) {
  if (config.architecture == Architecture::kMixtral) return {"block_sparse_moe.", "gate", "w1", "w3", "w2"};
  const bool gpt_oss = config.architecture == Architecture::kGptOss;
  return {"mlp.", gpt_oss ? "router" : "gate", "gate_proj", "up_proj", "down_proj", "gate_up_proj"};
}

/// Whether a tensor is the router of a layer.
inline bool is_router(const ModelConfig& config, std::string_view tensor) {
  return config.experts.count > 0 && tensor.ends_with(expert_names(config).router_weight());
}

}  // namespace verbatim
