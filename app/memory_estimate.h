#pragma once

#include <cstdint>

#include "checkpoint/checkpoint.h"

namespace verbatim::app {

/// What a checkpoint will take in memory, in bytes, known before it is packed.
struct MemoryEstimate {
  int64_t full = 0;          ///< the packed weights that every pass of the full reading uses
  int64_t mxfp4 = 0;         ///< the MXFP4 weights beside them, for recipes that draft with these
  int64_t kv_per_token = 0;  ///< keys and values of one token
  int64_t kv_context = 0;    ///< keys and values of a whole context
};

MemoryEstimate estimate_memory(const Checkpoint& checkpoint);
/// The part of it that the config alone says: the keys and values.
MemoryEstimate estimate_cache(const ModelConfig& config);

}  // namespace verbatim::app
