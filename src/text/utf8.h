#pragma once

#include <cstddef>
#include <string_view>

namespace verbatim {

/// The offset of the first byte of `text` that is not part of a valid UTF-8 character (overlong forms, surrogates and
/// values above U+10FFFF are invalid), or npos if all is valid.
size_t find_invalid_utf8(std::string_view text);

}  // namespace verbatim
