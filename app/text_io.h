#pragma once

#include <string>
#include <string_view>

namespace verbatim::app {

/// The whole of a file, or of standard input for "-". Throws Error(kBadInput).
std::string read_text(const std::string& path);

/// Writes text to standard output at once. Throws Error(kMachine) when that fails.
void write_out(std::string_view text);

/// The message with line breaks and other control characters made spaces: names of files may hold them.
std::string one_line(std::string_view message);

}  // namespace verbatim::app
