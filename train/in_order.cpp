#include "in_order.h"

#include <thread>
#include <vector>

namespace verbatim::train {

bool InOrder::run(int threads, const std::function<void(int64_t)>& work, const std::function<bool()>& stop) {
  std::vector<std::thread> others;
  for (int i = 0; i < threads; ++i) others.emplace_back([&] { work_through(work, stop); });
  for (std::thread& other : others) other.join();
  if (failure_) std::rethrow_exception(failure_);
  return done_ == count_;
}

void InOrder::work_through(const std::function<void(int64_t)>& work, const std::function<bool()>& stop) {
  while (true) {
    const int64_t number = next_++;
    if (number >= count_) return;
    try {
      const bool stopped = stop && stop();
      if (!stopped) work(number);
      if (!stopped && wait_for_turn(number)) {
        const std::lock_guard lock(mutex_);
        ++done_;
        changed_.notify_all();
        continue;
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
    return;
  }
}

bool InOrder::wait_for_turn(int64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ == number || ended_; });
  return !ended_;
}

}  // namespace verbatim::train
