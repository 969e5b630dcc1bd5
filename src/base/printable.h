#pragma once

#include <string>
#include <string_view>

namespace verbatim {

/// Makes a name from an untrusted file fit for an error message: one line of ASCII, of bounded length.
std::string printable(std::string_view name);

}  // namespace verbatim
