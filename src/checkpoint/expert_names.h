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

  /// The name of the router, after the layer's.
  std::string router_weight() const { return fmt::format("{}{}.weight", part, router); }
  /// The name of a matrix of an expert, after the layer's. `matrix` is gate, up or down.
  std::string weight(int64_t expert, std::string_view matrix) const {
    return fmt::format("{}experts.{}.{}.weight", part, expert, matrix);
  }
};

inline ExpertNames expert_names(const ModelConfig& config) {
  if (config.architecture == Architecture::kMixtral) return {"block_sparse_moe.", "gate", "w1", "w3", "w2"};
  return {"mlp.", "gate", "gate_proj", "up_proj", "down_proj"};
}

/// Whether a tensor is the router of a layer.
inline bool is_router(const ModelConfig& config, std::string_view tensor) {
  return config.experts.count > 0 && tensor.ends_with(expert_names(config).router_weight());
}

}  // namespace verbatim
