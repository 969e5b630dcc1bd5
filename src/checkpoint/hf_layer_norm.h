#pragma once

#include "base/json_fields.h"
#include "checkpoint/model_config.h"

namespace verbatim {

/// Whether a family has LayerNorms and a feed-forward part without a gate: GPT-2, StarCoder 2 and OPT.
bool is_layer_norm_family(Architecture architecture);

/// Reads the sizes and settings of a model of such a family from the fields of config.json, with what
/// Transformers assumes where nothing is stated. The config's architecture must be set. Throws
/// Error(kBadInput) for what the engine does not have.
void parse_layer_norm_family(const JsonFields& fields, ModelConfig& config);

}  // namespace verbatim
