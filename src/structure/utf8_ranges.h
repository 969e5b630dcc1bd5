#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "structure/node.h"

namespace verbatim {

/// A run of bytes of which each lies in a range of its own: the UTF-8 of a range of characters.
struct ByteRanges {
  struct Range {
    uint8_t first = 0;
    uint8_t last = 0;
  };
  std::array<Range, 4> range = {};
  int32_t length = 0;
};

/// The UTF-8 of characters: together the sequences give every character of the ranges once. Surrogates, which
/// are no characters, are left out.
std::vector<ByteRanges> utf8_ranges(std::span<const CharacterRange> ranges);

/// Sorts ranges and joins those that touch or overlap.
std::vector<CharacterRange> joined(std::vector<CharacterRange> ranges);
/// Every character that joined ranges lack.
std::vector<CharacterRange> complement(std::span<const CharacterRange> joined_ranges);
/// Whether one of the ranges has the character.
bool has_character(std::span<const CharacterRange> ranges, uint32_t character);
/// Appends a character as UTF-8.
void append_utf8(uint32_t character, std::string& text);
/// The text as `json.dumps` writes it between the quotes, except that characters beyond ASCII stand for
/// themselves.
std::string json_escaped(std::string_view text);

}  // namespace verbatim
