#pragma once

#include <signal.h>

#include <vector>

namespace verbatim::app {

/// The exit code of a program that Ctrl-C ended.
inline constexpr int kInterruptedExit = 130;

/// Decides once, at the start of a program, what signals do to it. A file that grows beyond the limit of the
/// process is an error like a full disk (SIGXFSZ). Ctrl-C ends the program with a line and exit code 130
/// unless whoever started it has it ignored, as a shell does for what runs in the background.
void prepare_signals();

/// Ctrl-C sets a flag while one of these lives, and a second one ends the program at once. With `others` so
/// do the requests to end that come from elsewhere, SIGTERM and SIGHUP. A signal that is ignored stays so.
class InterruptGuard {
 public:
  explicit InterruptGuard(bool others = false);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct Handled {
    int signal;
    struct sigaction before;
  };
  std::vector<Handled> handled_;
};

/// Whether Ctrl-C was pressed since the last InterruptGuard began.
bool interrupted();

/// Ends a command that was interrupted and has left nothing behind.
[[noreturn]] void end_interrupted();

}  // namespace verbatim::app
