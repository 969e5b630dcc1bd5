#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "checkpoint/model_config.h"

namespace verbatim {

/// The config as JSON: every field under its own name, empty optionals as null.
nlohmann::ordered_json config_json(const ModelConfig& config);

/// Reads a config from JSON, the inverse of config_json(). Throws Error(kBadInput), naming `where`, unless
/// there is every field and no other, all of the right type, and the config passes validate().
ModelConfig parse_config(const nlohmann::json& json, const std::string& where);

}  // namespace verbatim
