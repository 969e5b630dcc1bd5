#pragma once

#include <pybind11/pybind11.h>

#include <functional>

namespace verbatim::python {

/// Wakes a thread that waits for answers, from any other thread. What is waited with is a file descriptor, so
/// that a signal interrupts the waiting and an event loop can watch it.
class Waker {
 public:
  /// Throws Error(kMachine) when the process may open no more files.
  Waker();
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  void wake() const noexcept;
  /// Forgets that wake() was called.
  void rest() const noexcept;
  /// The descriptor that can be read from after wake() until rest().
  int fileno() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Waits without the interpreter's lock until `ready` says true, which is asked now and whenever the waker
/// wakes. A signal's handler runs as soon as the signal comes, on the main thread; what it throws is thrown.
void wait_until(const Waker& waker, const std::function<bool()>& ready);

/// Runs the handlers of signals that came, without which Ctrl-C would wait for the end of a computation. To
/// be called without the interpreter's lock, now and then; it takes the lock some dozens of times in a
/// second. Throws what a handler throws.
class SignalCheck {
 public:
  void operator()();

 private:
  int64_t last_ = 0;
};

}  // namespace verbatim::python
