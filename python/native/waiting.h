#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <functional>
#include <optional>

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

/// Releases the interpreter's lock for as long as it lives; whatever takes long is done under one. The
/// interpreter ends only once none is left: it kills a thread that asks for the lock later than that, and
/// killing a thread that is in C++ ends the process with an error.
class Unlocked {
 public:
  /// Throws Error(kUsage) when the interpreter is about to end.
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  std::optional<pybind11::gil_scoped_release> released_;
};

/// Whether the interpreter is about to end. With the interpreter's lock, the answer stays true or false until
/// the lock is released.
bool ending();

/// Lets no thread release the lock any more, ends what is computed and waits, with the lock released, until
/// every thread that had released it has it back. To be called with the lock, when the interpreter ends.
void end_computing();

/// Waits without the interpreter's lock until `ready` says true, which is asked now and whenever the waker
/// wakes. A signal's handler runs as soon as the signal comes, on the main thread; what it throws is thrown.
/// Throws Error(kUsage) when the interpreter is about to end.
void wait_until(const Waker& waker, const std::function<bool()>& ready);

/// Runs the handlers of signals that came, without which Ctrl-C would wait for the end of a computation. To
/// be called without the interpreter's lock, now and then; it takes the lock some dozens of times in a
/// second. Throws what a handler throws, and Error(kUsage) when the interpreter is about to end.
class SignalCheck {
 public:
  void operator()();

 private:
  int64_t last_ = 0;
};

}  // namespace verbatim::python
