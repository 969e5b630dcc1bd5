#pragma once

#include <string>

#include "checkpoint/gguf.h"
#include "checkpoint/model_config.h"

namespace verbatim {

/// Reads what sets a GPT-2 or a StarCoder 2 in a GGUF file apart as llama.cpp does. The sizes of the config
/// must be set. Throws Error(kBadInput), naming `where`, if a GPT-2 has settings of rotation.
void parse_gguf_layer_norm(const GgufFile& gguf, const std::string& where, ModelConfig& config);

}  // namespace verbatim
