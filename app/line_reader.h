#pragma once

#include <optional>
#include <string>

namespace verbatim::app {

/// Lines that a person types: edited with history on a terminal, read plainly from anything else. One at a
/// time, because the editing has state of its own.
class LineReader {
 public:
  LineReader();
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// Whether a person sits at the other end.
  bool on_terminal() const { return on_terminal_; }

  /// The next line after a prompt mark on stderr, or nothing at the end of the input. On a terminal that is
  /// Ctrl-D, or Ctrl-C twice; Ctrl-C once clears the line.
  std::optional<std::string> next(const std::string& mark);

 private:
  bool on_terminal_;
};

}  // namespace verbatim::app
