#include "interrupt.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>

namespace verbatim::app {

namespace {

std::atomic<bool> interrupt_seen = false;

void on_interrupt(int) {
  interrupt_seen.store(true, std::memory_order_relaxed);
}

}  // namespace

InterruptGuard::InterruptGuard(bool others) {
  interrupt_seen = false;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESETHAND;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (signal != SIGINT && !others) continue;
    Handled handled{.signal = signal, .before = {}};
    sigaction(signal, nullptr, &handled.before);
    if (signal == SIGHUP && handled.before.sa_handler == SIG_IGN) continue;  // nohup asked for that
    sigaction(signal, &action, nullptr);
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
  fmt::print(stderr, "verbatim: interrupted; nothing was left behind\n");
  throw CLI::RuntimeError(kInterruptedExit);
}

}  // namespace verbatim::app
