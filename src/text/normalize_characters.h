#pragma once

#include <string>
#include <string_view>

#include "text/bounded_text.h"
#include "text/character_map.h"

namespace verbatim {

// Normalizations that look at the characters of a text (valid UTF-8) one by one.

/// Writes every character in lower case, without regard to its neighbours.
std::string lower_case(std::string_view text);
/// Removes combining marks: all, or only those that take no space of their own.
std::string without_marks(std::string_view text, bool spacing_too);
/// Removes control, format and private characters and U+FFFD, and writes white space as spaces, as BERT does.
std::string cleaned(std::string_view text);
/// Puts a space before and after every character of the blocks of Chinese characters that BERT looks at.
std::string with_spaced_ideographs(std::string_view text);
/// Removes most control characters and writes others, and what has no width, as spaces, as SentencePiece's
/// rules "nmt" do.
std::string without_nmt_controls(std::string_view text);
/// Replaces characters by a table. What belongs together as a user sees it (an extended grapheme cluster) is
/// looked up as a whole if it is at most five bytes long, and else, or if the table does not have it,
/// character by character. Throws Error(kBadInput) if that exceeds the limit of `result`, which is empty.
std::string mapped_characters(const CharacterMap& map, std::string_view text, BoundedText result);

}  // namespace verbatim
