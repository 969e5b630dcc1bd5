#pragma once

#include <string>
#include <string_view>

#include "container/container.h"

namespace verbatim {

/// The header as JSON.
std::string header_json(const ContainerHeader& header);

/// Reads a header from JSON, the inverse of header_json(). Throws Error(kBadInput), naming `where`, if
/// something is missing or of the wrong type. Sizes are not compared with a file or with the config.
ContainerHeader parse_header(std::string_view json, const std::string& where);

}  // namespace verbatim
