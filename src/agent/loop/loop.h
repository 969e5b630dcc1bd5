#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace verbatim::agent {

using Duration = std::chrono::microseconds;
/// A moment, since the loop was made.
using Time = std::chrono::microseconds;

inline double in_seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}
inline Duration from_seconds(double seconds) {
  return Duration(static_cast<int64_t>(seconds * 1e6));
}

/// What happens, one thing after the other, on one thread. Everything of a run is called by its loop, so
/// nothing of it needs a lock, and the same events in the same order give the same run.
class Loop {
 public:
  virtual ~Loop() = default;
  /// The moment at which the present call from the loop began.
  virtual Time now() const = 0;
  /// Calls a function once, after a time, and never from within this call. Returns a number for forget().
  virtual uint64_t after(Duration time, std::function<void()> work) = 0;
  /// Calls off a timer that has not been called yet. 0 and a timer that is over are no timers.
  virtual void forget(uint64_t timer) = 0;
};

}  // namespace verbatim::agent
