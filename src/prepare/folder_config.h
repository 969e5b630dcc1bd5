#pragma once

#include <string>

#include "checkpoint/model_config.h"

namespace verbatim {

/// A config.json that states a config as one of an architecture, whose weights are in `type` ("bfloat16").
/// What it cannot state is found out when it is read again.
std::string folder_config(ModelConfig config, Architecture architecture, const char* type);

}  // namespace verbatim
