#pragma once

#include <string_view>

#include "checkpoint/model_config.h"

namespace verbatim {

/// The names of the norms around the two parts of a layer, without ".weight": their Hugging Face names. A
/// norm that the layer does not have is empty.
struct BlockNormNames {
  std::string_view before_attention;
  std::string_view after_attention;
  std::string_view before_mlp;
  std::string_view after_mlp;
};

inline BlockNormNames block_norm_names(const ModelConfig& config) {
  switch (config.block_norms) {
    case BlockNorms::kBefore:
      if (config.architecture == Architecture::kGpt2) return {"ln_1", {}, "ln_2", {}};
      if (config.architecture == Architecture::kOpt) {
        return {"self_attn_layer_norm", {}, "final_layer_norm", {}};
      }
      break;
    case BlockNorms::kAfter:
      return {{}, "post_attention_layernorm", {}, "post_feedforward_layernorm"};
    case BlockNorms::kBoth:
      if (config.architecture == Architecture::kGlm4) {
        return {"input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm",
                "post_mlp_layernorm"};
      }
      return {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
              "post_feedforward_layernorm"};
  }
  return {"input_layernorm", {}, "post_attention_layernorm", {}};
}

}  // namespace verbatim
