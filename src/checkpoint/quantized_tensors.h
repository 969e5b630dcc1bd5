#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/quantization_config.h"

namespace verbatim {

/// Replaces codes and scales of quantized matrices by tensors of weights under the usual names, so that
/// "X.qweight", "X.qzeros", "X.scales" and "X.g_idx" become "X.weight". Throws Error(kBadInput), naming the
/// tensor, if one is missing, has another shape or type, or holds a scale that is no finite number.
void join_quantized_tensors(Checkpoint& checkpoint, const QuantizationConfig& config);

/// Throws Error(kBadInput), naming the tensor, if one is in a type that only a quantization_config explains.
void refuse_unexplained_types(const Checkpoint& checkpoint);

}  // namespace verbatim
