#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

namespace verbatim::train {

/// Hands out the numbers from 0 on to several threads, and lets each of them do the last part of its work
/// when all smaller numbers are done with theirs: what is added up in that part has the same order with any
/// number of threads.
class InOrder {
 public:
  explicit InOrder(int64_t count) : count_(count) {}

  /// Calls work(number) for every number on `threads` threads, until one throws or `stop` returns true;
  /// `stop` is asked on several threads. Returns whether all were done. Throws what a thread has thrown.
  bool run(int threads, const std::function<void(int64_t)>& work, const std::function<bool()>& stop);
  /// Waits until all smaller numbers are done. To be called from `work`. Returns false if the work ends
  /// early; nothing may be added then.
  bool wait_for_turn(int64_t number);

 private:
  void work_through(const std::function<void(int64_t)>& work, const std::function<bool()>& stop);

  int64_t count_;
  std::atomic<int64_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t done_ = 0;
  bool ended_ = false;
  std::exception_ptr failure_;
};

}  // namespace verbatim::train
