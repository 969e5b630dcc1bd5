#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace verbatim {

/// A text from a file or an argument as it can be shown within a line: bytes that are no UTF-8 become U+FFFD,
/// and characters that steer a terminal become spaces. Of a text with more than `longest` bytes the middle is
/// left out.
std::string shown(std::string_view text, size_t longest);

/// The offset of the first byte of `text` that is not part of a valid UTF-8 character (overlong forms,
/// surrogates and values above U+10FFFF are invalid), or npos if all is valid.
size_t find_invalid_utf8(std::string_view text);

/// The text with U+FFFD in the place of each byte that find_invalid_utf8() finds.
std::string valid_utf8(std::string_view text);

/// Checks that a text is valid UTF-8. Throws Error(kBadInput) with the offset of the first bad byte
/// otherwise; `what` names the text ("the prompt").
void require_utf8(std::string_view text, std::string_view what);

/// The whole of a text file or a pipe, which may hold `most` bytes. Anything else, such as a device or a
/// folder, is refused without waiting for it. Throws Error(kBadInput), naming the file, when it cannot be
/// read or as soon as there are more bytes, and Error(kMachine) when the process may open no more files.
std::string read_text(const std::filesystem::path& path, size_t most);
/// The whole of standard input, which may hold `most` bytes. Throws Error(kBadInput) when it cannot be read
/// or as soon as there are more bytes.
std::string read_standard_input(size_t most);

}  // namespace verbatim
