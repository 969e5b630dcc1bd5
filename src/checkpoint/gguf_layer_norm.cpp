#include "checkpoint/gguf_layer_norm.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/printable.h"

namespace verbatim {

namespace {

/// Whether a matrix of a layer has a bias: a file has all of them or none.
bool has_biases(const GgufFile& gguf) {
  return std::ranges::any_of(gguf.tensors, [](const auto& entry) {
    for (const std::string_view end :
         {"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias", "ffn_up.bias", "ffn_down.bias"}) {
      if (entry.first.ends_with(end)) return true;
    }
    return false;
  });
}

}  // namespace

void parse_gguf_layer_norm(const GgufFile& gguf, const std::string& where, ModelConfig& config) {
  config.layer_norm = true;
  config.plain_mlp = true;
  config.activation = Activation::kGeluTanh;
  const bool gpt2 = config.architecture == Architecture::kGpt2;
  config.qkv_bias = gpt2 || has_biases(gguf);
  config.output_bias = config.qkv_bias;
  config.mlp_bias = config.qkv_bias;
  if (!gpt2) return;
  constexpr std::string_view kRotation = "gpt2.rope.";
  const auto found = gguf.metadata.lower_bound(std::string(kRotation));
  if (found != gguf.metadata.end() && found->first.starts_with(kRotation)) {
    bad_input("{}: the metadata {} is not supported: a GPT-2 does not rotate", where,
              printable(found->first));
  }
  config.fused_qkv = true;
  set_learned_positions(config, where);
}

}  // namespace verbatim
