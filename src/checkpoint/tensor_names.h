#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "checkpoint/model_config.h"

namespace verbatim {

/// The Hugging Face names of a family's tensors, without ".weight" or ".bias" after them. block_norms.h and
/// expert_names.h have those of norms and experts.
struct TensorNames {
  std::string_view embedding = "model.embed_tokens";
  std::string_view positions = {};  ///< the learned vectors of positions; empty without them
  int64_t first_position = 0;       ///< the row of these that belongs to position 0
  std::string_view layers = "model.layers.";
  std::string_view final_norm = "model.norm";
  // Within a layer:
  std::string_view attention = "self_attn.";  ///< the part that holds the matrices of attention
  std::string_view qkv = "qkv_proj";          ///< queries, keys and values as one
  std::string_view output = "o_proj";
  std::string_view mlp = "mlp.";  ///< the part that holds the matrices of the feed-forward part
  std::string_view up = "up_proj";
  std::string_view down = "down_proj";

  /// The beginning of the names of a layer's tensors.
  std::string layer(int64_t index) const { return fmt::format("{}{}.", layers, index); }
};

inline TensorNames tensor_names(const ModelConfig& config) {
  TensorNames names;
  switch (config.architecture) {
    case Architecture::kGpt2:
      return {.embedding = "wte",
              .positions = "wpe",
              .layers = "h.",
              .final_norm = "ln_f",
              .attention = "attn.",
              .qkv = "c_attn",
              .output = "c_proj",
              .up = "c_fc",
              .down = "c_proj"};
    case Architecture::kOpt:
      return {.embedding = "model.decoder.embed_tokens",
              .positions = "model.decoder.embed_positions",
              .first_position = 2,
              .layers = "model.decoder.layers.",
              .final_norm = "model.decoder.final_layer_norm",
              .output = "out_proj",
              .mlp = "",
              .up = "fc1",
              .down = "fc2"};
    case Architecture::kStarcoder2:
      names.up = "c_fc";
      names.down = "c_proj";
      return names;
    default:
      return names;
  }
}

}  // namespace verbatim
