#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace verbatim::serve {

/// A few threads that do what they are given, in its order. A task must not throw and should not wait for
/// anything but the processor.
class Workers {
 public:
  explicit Workers(int threads);
  /// Waits until everything is done.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Takes a task in. Does not block. May be called by any thread, a task's among them.
  void post(std::function<void()> task);
  /// The tasks that no thread has begun.
  int64_t waiting() const;

 private:
  void work();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace verbatim::serve
