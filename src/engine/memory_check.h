#pragma once

#include <cstdint>
#include <optional>

#include "checkpoint/model_config.h"
#include "verbatim/recipe.h"

namespace verbatim {

/// What a sequence takes in memory, in bytes, beside the weights.
struct ContextMemory {
  int64_t tokens = 0;       ///< how long the sequence may become
  int64_t cache = 0;        ///< its keys and values at that length
  int64_t draft_cache = 0;  ///< those of models that draft for it, and copies that drafts read
  int64_t workspace = 0;    ///< the buffers of a pass
  int64_t held = 0;         ///< how much of all that is taken already

  int64_t wanted() const { return cache + draft_cache + workspace - held; }
};

/// Throws Error(kMachine), in one line that says how much the context would take and how much there is, if it
/// does not fit. `available` is available_memory(); where that is unknown nothing is refused.
void require_memory(const ContextMemory& need, std::optional<int64_t> available);

/// Keys and values in BF16 of so many positions, in whole chunks.
int64_t dense_cache_bytes(const ModelConfig& config, int64_t positions);

/// What drafting takes for keys and values of its own, of a sequence of `length` tokens, `prompt` of which
/// are its prompt. `draft`: the other model that the recipe may draft with, or null.
int64_t draft_cache_bytes(const Recipe& recipe, const ModelConfig& model, const ModelConfig* draft,
                          int64_t prompt, int64_t length);

/// About what a pass over so many rows needs for its buffers.
int64_t pass_workspace_bytes(const ModelConfig& config, int64_t rows);

}  // namespace verbatim
