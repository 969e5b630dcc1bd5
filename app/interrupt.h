#pragma once

#include <signal.h>

#include <vector>

namespace verbatim::app {

/// The exit code of a program that Ctrl-C ended.
inline constexpr int kInterruptedExit = 130;

/// Ctrl-C sets a flag while one of these lives; a second one ends the program as usual. With `others` so do
/// the requests to end that come from elsewhere, SIGTERM and SIGHUP.
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
