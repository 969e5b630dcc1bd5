#include "agent/loop/simulated_loop.h"

#include <algorithm>

namespace verbatim::agent {

uint64_t SimulatedLoop::after(Duration time, std::function<void()> work) {
  const Time when = now_ + std::max(time, Duration(0));
  timers_.emplace(std::pair(when, ++made_), std::move(work));
  times_.emplace(made_, when);
  return made_;
}

void SimulatedLoop::forget(uint64_t timer) {
  const auto found = times_.find(timer);
  if (found == times_.end()) return;
  timers_.erase({found->second, timer});
  times_.erase(found);
}

void SimulatedLoop::run() {
  while (!timers_.empty()) {
    auto first = timers_.extract(timers_.begin());
    now_ = first.key().first;
    times_.erase(first.key().second);
    first.mapped()();
  }
}

}  // namespace verbatim::agent
