#pragma once

#include "checkpoint/checkpoint.h"

namespace verbatim {

/// Throws Error(kBadInput) unless every tensor that the config calls for is there with the right shape, and
/// no layer has a tensor that the engine would leave out of the computation.
void check_tensors(const Checkpoint& checkpoint);

}  // namespace verbatim
