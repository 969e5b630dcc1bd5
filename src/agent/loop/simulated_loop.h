#pragma once

#include <map>
#include <utility>

#include "agent/loop/loop.h"

namespace verbatim::agent {

/// A loop whose clock jumps to the next timer: what takes minutes is computed at once, and always alike.
class SimulatedLoop : public Loop {
 public:
  Time now() const override { return now_; }
  uint64_t after(Duration time, std::function<void()> work) override;
  void forget(uint64_t timer) override;
  /// Calls the timers in order of time, and of making among equals, until none is left.
  void run();
  /// The number of timers that wait.
  size_t waiting() const { return timers_.size(); }

 private:
  Time now_{0};
  uint64_t made_ = 0;
  std::map<std::pair<Time, uint64_t>, std::function<void()>> timers_;
  std::map<uint64_t, Time> times_;
};

}  // namespace verbatim::agent
