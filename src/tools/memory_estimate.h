#pragma once

#include "checkpoint/checkpoint.h"
#include "container/container.h"
#include "verbatim/inspect.h"

namespace verbatim {

/// The memory that a checkpoint will take once its weights are packed.
MemoryEstimate estimate_memory(const Checkpoint& checkpoint);
/// The memory that a packed file takes.
MemoryEstimate estimate_memory(const Container& container);

}  // namespace verbatim
