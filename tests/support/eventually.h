#pragma once

#include <chrono>
#include <thread>

namespace verbatim::test {

/// Waits until a condition holds, a minute at most, as machines are busy; returns whether it does.
template <typename Condition>
bool eventually(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace verbatim::test
