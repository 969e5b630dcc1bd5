#include "text_io.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "fail.h"
#include "verbatim/text.h"

namespace verbatim::app {

namespace {

constexpr size_t kLongestLine = 1000;
constexpr size_t kLongestName = 120;

/// Far above any text that a model could be given.
constexpr size_t kLongestText = size_t{1} << 30;

}  // namespace

void fill_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest number that is free, which is the stream's. Using it fails as it would have, but for
    // standard error, of which nobody asks.
    open("/dev/null", stream == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
  }
}

void write_error(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t count = write(STDERR_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

std::string shown_lines(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    valid += shown(text.substr(0, end), text.size());
    if (end == std::string_view::npos) break;
    valid += '\n';
    text.remove_prefix(end + 1);
  }
  return valid;
}

std::string folded(std::string_view text, size_t width) {
  const std::string valid = shown_lines(text);
  std::string lines;
  for (size_t at = 0; at < valid.size();) {
    size_t end = std::min({valid.find('\n', at), valid.size(), at + width});
    // A character is not cut in two.
    while (end < valid.size() && end > at + 1 && (static_cast<unsigned char>(valid[end]) & 0xC0U) == 0x80U)
      --end;
    lines += "  " + valid.substr(at, end - at) + "\n";
    at = end < valid.size() && valid[end] == '\n' ? end + 1 : end;
  }
  return lines;
}

void say_text(std::string_view text) {
  write_error(shown_lines(text));
}

std::string one_line(std::string_view message) {
  return shown(message, kLongestLine);
}

std::string shown_name(std::string_view name) {
  return shown(name, kLongestName);
}

std::string read_text(const std::string& path) {
  return path == "-" ? read_standard_input(kLongestText) : verbatim::read_text(path, kLongestText);
}

void write_out(std::string_view text) {
  const size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) != 0 || written != text.size()) {
    fail(ErrorKind::kMachine, "cannot write to standard output: is the disk full?");
  }
}

}  // namespace verbatim::app
