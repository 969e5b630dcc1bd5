#pragma once

#include <functional>
#include <memory>

namespace verbatim::app {

/// Takes the requests to end that a server gets, Ctrl-C, SIGTERM and SIGHUP, on a thread of its own, where
/// they may do anything. It has to be made before other threads are, since these are not to take them. A
/// signal that is ignored stays so.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Calls a function for each signal from now on. Until then, a signal ends the program at once: with 130
  /// if the first one was Ctrl-C, else with 0.
  void on_signal(std::function<void()> stop);
  /// From now on a further signal ends the program at once, with the code that the first one stands for.
  void end_at_once();
  /// Whether the first signal was Ctrl-C.
  bool interrupted() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verbatim::app
