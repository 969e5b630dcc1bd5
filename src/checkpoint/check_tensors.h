#pragma once

#include "checkpoint/checkpoint.h"

namespace verbatim {

/// Checks the tensors of a checkpoint. Throws Error(kBadInput) unless every tensor that the config calls for
/// is there with the right shape, and no layer has a tensor that the engine would ignore.
void check_tensors(const Checkpoint& checkpoint);

}  // namespace verbatim
