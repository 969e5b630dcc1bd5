#pragma once

#include "checkpoint/checkpoint.h"

namespace verbatim {

/// Replaces the stacked experts of a gpt-oss in Hugging Face layout by tensors of single experts:
/// "mlp.experts.gate_up_proj_blocks" and "..._scales" by "mlp.experts.0.gate_up_proj.weight", ..., and
/// "mlp.experts.gate_up_proj_bias" by "mlp.experts.0.gate_up_proj.bias", ...; likewise those of down_proj.
/// Throws Error(kBadInput), naming the tensor, for one that is missing or not of the config's shape.
void split_mxfp4_experts(Checkpoint& checkpoint);

}  // namespace verbatim
