#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"

namespace verbatim {

/// The type of a tensor that a GGUF file gives by number; nothing for numbers that cannot be read.
std::optional<DType> gguf_dtype(uint32_t number);

/// The number of a type in GGUF files.
uint32_t gguf_number(DType dtype);

/// The name of a GGUF type, readable or not, for messages: "IQ1_S", or "number 77" for one without a name.
std::string gguf_type_name(uint32_t number);

/// The names of all GGUF types that can be read, for messages: "F32, F16, ...".
std::string gguf_readable_types();

}  // namespace verbatim
