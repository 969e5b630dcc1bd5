#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "checkpoint/model_config.h"

namespace verbatim {

/// The config with every field, under the field's own name; empty optionals are null.
nlohmann::ordered_json config_json(const ModelConfig& config);

/// The inverse. Throws Error(kBadInput), naming `where`, unless every field is there, of the right type, and
/// no other, and the whole passes validate().
ModelConfig parse_config(const nlohmann::json& json, const std::string& where);

}  // namespace verbatim
