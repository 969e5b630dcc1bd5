#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "verbatim/text.h"

namespace verbatim {

/// The number of bytes, 0 to 3, at the end of `text` that are an incomplete UTF-8 character, which further
/// bytes could complete.
size_t incomplete_utf8_suffix(std::string_view text);

/// The number of bytes of a character of valid UTF-8, by its first byte.
inline size_t utf8_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// The character at `offset` of a valid UTF-8 text.
uint32_t utf8_character(std::string_view text, size_t offset);

}  // namespace verbatim
