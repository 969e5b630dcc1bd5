#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace verbatim {

/// A text from a file or an argument as it can be shown within a line: bytes that are no UTF-8 become U+FFFD,
/// and characters that steer a terminal become spaces. Of a text with more than `longest` bytes the middle is
/// left out.
std::string shown(std::string_view text, size_t longest);

}  // namespace verbatim
