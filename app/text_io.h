#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace verbatim::app {

/// Gives each of the three standard streams that came closed something in its place, so that no file that is
/// opened later takes its number and receives what was meant for people.
void fill_standard_streams();

/// Writes bytes to standard error. That it is closed or full is no error of the command, so this never fails.
/// A signal handler may call it.
void write_error(std::string_view bytes) noexcept;

/// A text of any number of lines as it can be shown on a terminal: bytes that are no UTF-8 become U+FFFD, and
/// characters that steer the terminal become spaces, but for the ends of lines.
std::string shown_lines(std::string_view text);

/// A text as lines of at most so many bytes, escaped as shown_lines() does, each with two spaces before it.
/// Nothing is left out.
std::string folded(std::string_view text, size_t width);

/// Writes a text of any number of lines to standard error, as shown_lines() has it.
void say_text(std::string_view text);

/// Writes a formatted text to standard error, in valid UTF-8. It never fails because of where it writes to.
template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say_text(fmt::format(format, std::forward<Args>(args)...));
}

/// A message as one line of bounded length: names of files and arguments may hold anything.
std::string one_line(std::string_view message);

/// A name from a file or an argument as it can be shown within a line, of which it takes a part only.
std::string shown_name(std::string_view name);

/// The whole of a file or pipe, or of standard input for "-", which may hold 1 GiB. Throws Error(kBadInput).
std::string read_text(const std::string& path);

/// Writes text to standard output at once. Throws Error(kMachine) when that fails.
void write_out(std::string_view text);

}  // namespace verbatim::app
