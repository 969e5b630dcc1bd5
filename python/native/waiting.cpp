#include "waiting.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "verbatim/error.h"

namespace verbatim::python {

namespace py = pybind11;

namespace {

/// A signal that comes just before the waiting begins does not interrupt it, so it ends by itself after so
/// many milliseconds.
constexpr int kLongestWait = 50;

void run_handlers() {
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

void wait_until(const Waker& waker, const std::function<bool()>& ready) {
  const py::gil_scoped_release released;
  while (!ready()) {
    pollfd waited{.fd = waker.fileno(), .events = POLLIN, .revents = 0};
    if (poll(&waited, 1, kLongestWait) > 0) {
      waker.rest();
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
