#pragma once

#include <string>
#include <string_view>

#include "container/container.h"

namespace verbatim {

/// The header as JSON.
std::string header_json(const ContainerHeader& header);

/// The inverse. Throws Error(kBadInput), naming `where`, for anything that is not there or of the wrong type.
/// Sizes are compared neither with a file nor with the config.
ContainerHeader parse_header(std::string_view json, const std::string& where);

}  // namespace verbatim
