#include "serve/workers.h"

#include <utility>

namespace verbatim::serve {

Workers::Workers(int threads) {
  threads_.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void Workers::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_one();
}

int64_t Workers::waiting() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(tasks_);
}

void Workers::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds goes without the lock
    lock.lock();
  }
}

}  // namespace verbatim::serve
