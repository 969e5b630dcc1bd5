#include "waiting.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

#include "errors.h"
#include "verbatim/error.h"

namespace verbatim::python {

namespace py = pybind11;

namespace {

/// A signal that comes just before the waiting begins does not interrupt it, so it ends by itself after so
/// many milliseconds.
constexpr int kLongestWait = 50;

std::atomic<bool> is_ending = false;

/// How many objects of Unlocked there are, and how many this thread has: a signal's handler that runs within
/// one may begin another.
std::atomic<int64_t> unlocked = 0;
thread_local int64_t unlocked_here = 0;

/// A forked process has but the thread that forked it.
void forget_other_threads() {
  unlocked = unlocked_here;
}

[[noreturn]] void refuse_at_end() {
  refuse_use("the interpreter is ending: compute before it does");
}

void run_handlers() {
  if (ending()) refuse_at_end();  // without the lock, which another thread may hold to the end
  const py::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

}  // namespace

Waker::Waker() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ >= 0) return;
  throw Error(ErrorKind::kMachine, std::string("waiting for an answer needs a file descriptor: ") +
                                       std::strerror(errno) + "; wait for fewer answers at a time");
}

Waker::~Waker() {
  close(descriptor_);
}

void Waker::wake() const noexcept {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof one);
}

void Waker::rest() const noexcept {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(descriptor_, &count, sizeof count);
}

bool ending() {
  return is_ending;
}

Unlocked::Unlocked() {
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, forget_other_threads);
  if (ending()) refuse_at_end();
  ++unlocked;
  ++unlocked_here;
  released_.emplace();
}

Unlocked::~Unlocked() {
  released_.reset();
  --unlocked_here;
  --unlocked;
}

void end_computing() {
  is_ending = true;
  const py::gil_scoped_release released;
  while (unlocked > unlocked_here) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void wait_until(const Waker& waker, const std::function<bool()>& ready) {
  if (ready()) return;
  const Unlocked released;
  SignalCheck check;
  while (!ready()) {
    pollfd waited{.fd = waker.fileno(), .events = POLLIN, .revents = 0};
    if (poll(&waited, 1, kLongestWait) > 0) {
      waker.rest();
      // A signal need not have come during poll(), nor to this thread, and pieces may come one upon another.
      check();
    } else {
      run_handlers();
    }
  }
}

void SignalCheck::operator()() {
  constexpr int64_t kMilliseconds = 20;
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::steady_clock::now().time_since_epoch())
                       .count();
  if (now - last_ < kMilliseconds) return;
  last_ = now;
  run_handlers();
}

}  // namespace verbatim::python
