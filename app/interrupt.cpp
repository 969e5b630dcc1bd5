#include "interrupt.h"

#include <unistd.h>

#include <atomic>
#include <string>
#include <string_view>

#include "command_line.h"
#include "program.h"
#include "text_io.h"

namespace verbatim::app {

namespace {

std::atomic<bool> interrupt_seen = false;

void note_interrupt(int) {
  interrupt_seen.store(true, std::memory_order_relaxed);
}

/// Made before the handler is there, because a handler may not make strings.
std::string last_words;

void end_at_once(int) {
  write_error(last_words);
  _exit(kInterruptedExit);
}

bool is_ignored(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

void prepare_signals() {
  signal(SIGXFSZ, SIG_IGN);
  if (is_ignored(SIGINT)) return;
  const char* const over_the_bar = isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "";
  last_words = std::string(over_the_bar) + kProgram.name + ": interrupted\n";
  struct sigaction action {};
  action.sa_handler = end_at_once;
  sigaction(SIGINT, &action, nullptr);
}

InterruptGuard::InterruptGuard(bool others) {
  interrupt_seen = false;
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  action.sa_flags = SA_RESETHAND;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if ((signal != SIGINT && !others) || is_ignored(signal)) continue;
    Handled handled{.signal = signal, .before = {}};
    sigaction(signal, &action, &handled.before);
    handled_.push_back(handled);
  }
}

InterruptGuard::~InterruptGuard() {
  for (const Handled& handled : handled_) sigaction(handled.signal, &handled.before, nullptr);
}

bool interrupted() {
  return interrupt_seen.load(std::memory_order_relaxed);
}

void end_interrupted() {
  say("{}: interrupted; nothing was left behind\n", kProgram.name);
  throw Exit{kInterruptedExit};
}

}  // namespace verbatim::app
