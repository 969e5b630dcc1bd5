#pragma once

#include <cstdint>
#include <optional>

#include "checkpoint/model_config.h"
#include "verbatim/recipe.h"

namespace verbatim {

/// The memory that a sequence takes beside the weights, in bytes.
struct ContextMemory {
  int64_t tokens = 0;       ///< the most tokens that the sequence may reach
  int64_t cache = 0;        ///< keys and values of the sequence at that length
  int64_t draft_cache = 0;  ///< keys and values of models that draft, and copies that drafts read
  int64_t workspace = 0;    ///< the buffers of a pass
  int64_t held = 0;         ///< the part of the memory above that is taken already

  /// The bytes that are still to be taken.
  int64_t wanted() const { return cache + draft_cache + workspace - held; }
};

/// Throws Error(kMachine) if a sequence does not fit into the available memory, in one line that says how
/// much it would take and how much there is. `available` is available_memory(); if that is unknown, nothing
/// is refused.
void require_memory(const ContextMemory& need, std::optional<int64_t> available);

/// The bytes of keys and values in BF16 of a number of positions, rounded up to whole chunks.
int64_t dense_cache_bytes(const ModelConfig& config, int64_t positions);

/// The bytes that drafting takes for keys and values of its own, for a sequence of `length` tokens, `prompt`
/// of which are its prompt. `draft` is the other model that the recipe may draft with, or null.
int64_t draft_cache_bytes(const Recipe& recipe, const ModelConfig& model, const ModelConfig* draft,
                          int64_t prompt, int64_t length);

/// About the number of bytes that the buffers of a pass over `rows` rows take.
int64_t pass_workspace_bytes(const ModelConfig& config, int64_t rows);

}  // namespace verbatim
