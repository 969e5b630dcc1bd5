#pragma once

#include "base/json_fields.h"
#include "checkpoint/model_config.h"

namespace verbatim {

/// Reads how positions are rotated and scaled from the fields of config.json, and sets the context to the
/// scaled one. The other sizes of the config must be set, and the values that are to be taken where nothing
/// is stated. Older files have rope_theta and rope_scaling, newer ones an object rope_parameters with both.
void parse_rope(const JsonFields& fields, ModelConfig& config);

}  // namespace verbatim
