#pragma once

#include <string_view>

#include "templates/machine.h"

namespace verbatim::jinja {

/// Whether Python counts a character as white space.
bool is_white_space(uint32_t character);

/// A text without the characters of `what` (white space if null) at its ends.
TracedText stripped(const TracedText& text, const TracedText* what, bool left, bool right);
/// A text with at most `most` (all if negative) occurrences of a part replaced.
TracedText replaced(Machine& machine, const TracedText& text, const TracedText& part, const TracedText& by,
                    int64_t most);
/// The parts of a text between separators (white space if null), at most `most` cuts if that is not negative,
/// counted from the right if `from_right`.
List* split(Machine& machine, const TracedText& text, const TracedText* separator, int64_t most,
            bool from_right);
/// The lines of a text.
List* split_lines(Machine& machine, const TracedText& text, bool keep_ends);
/// The written forms of all items with a separator between them.
Value joined(Machine& machine, const TracedText& separator, const List& items);

enum class LetterCase { kUpper, kLower, kTitle, kCapitalize, kSwap };
TracedText in_case(Machine& machine, const TracedText& text, LetterCase letter_case);

/// A text whose lines after the first begin with `indent`; the first line too if `first`, and empty lines if
/// `blank`.
TracedText indented(const TracedText& text, const TracedText& indent, bool first, bool blank);
/// What str.format() makes of a text.
TracedText formatted(Machine& machine, const TracedText& text, const Arguments& arguments);
/// What the operator % makes of a text.
TracedText percent_formatted(Machine& machine, const TracedText& text, const Arguments& arguments);

}  // namespace verbatim::jinja
