#include "base/thread_team.h"

#include <sched.h>

#include <algorithm>
#include <system_error>

#include "base/error.h"

namespace verbatim {

namespace {

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Long enough to bridge the gap between two matrices of a pass, short enough that a member which shares its
// core with something else gives way within some microseconds.
constexpr int kSpins = 200;
constexpr int kYields = 200;

/// Waits until done() holds: spins, then yields, then calls sleep() repeatedly.
template <typename Done, typename Sleep>
void wait_until(Done done, Sleep sleep) {
  for (int i = 0; i < kSpins; ++i) {
    if (done()) return;
    pause_cpu();
  }
  for (int i = 0; i < kYields; ++i) {
    if (done()) return;
    std::this_thread::yield();
  }
  while (!done()) sleep();
}

}  // namespace

ThreadTeam::ThreadTeam(int size) {
  if (size < 1 || size > 4096)
    fail(ErrorKind::kUsage, "a thread count of {} is not possible (1 to 4096)", size);
  shares_ = std::vector<Share>(static_cast<size_t>(size));
  workers_.reserve(static_cast<size_t>(size - 1));
  try {
    for (int member = 1; member < size; ++member) {
      workers_.emplace_back([this, member] { serve(member); });
    }
  } catch (const std::system_error&) {
    stop();
    fail(ErrorKind::kMachine, "the machine does not allow {} threads: use fewer", size);
  }
}

ThreadTeam::~ThreadTeam() {
  stop();
}

void ThreadTeam::stop() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadTeam::run_erased(Function function, void* context) {
  if (workers_.empty()) {
    function(context, 0, 1);
    return;
  }
  function_ = function;
  context_ = context;
  remaining_.store(static_cast<int32_t>(workers_.size()), std::memory_order_relaxed);
  const uint32_t epoch = epoch_.fetch_add(1, std::memory_order_release) + 1;
  epoch_.notify_all();
  function(context, 0, size());
  for (int member = 1; member < size(); ++member) {
    if (!begin_share(member, epoch)) continue;
    function(context, member, size());
    remaining_.fetch_sub(1, std::memory_order_acq_rel);
  }
  int32_t left = 0;
  wait_until([&] { return (left = remaining_.load(std::memory_order_acquire)) == 0; },
             [&] { remaining_.wait(left, std::memory_order_acquire); });
}

/// Claims the share of a member in a call of run(). False if another thread has begun it, or the call is
/// over: a call ends only after all of its shares have been begun, so the number before its own is there only
/// while it lasts.
bool ThreadTeam::begin_share(int member, uint32_t epoch) {
  uint32_t before = epoch - 1;
  return shares_[static_cast<size_t>(member)].begun.compare_exchange_strong(
      before, epoch, std::memory_order_acq_rel, std::memory_order_relaxed);
}

void ThreadTeam::serve(int member) {
  uint32_t seen = 0;
  while (true) {
    uint32_t epoch = seen;
    wait_until([&] { return (epoch = epoch_.load(std::memory_order_acquire)) != seen; },
               [&] { epoch_.wait(seen, std::memory_order_acquire); });
    seen = epoch;
    if (stop_.load(std::memory_order_relaxed)) return;
    if (!begin_share(member, epoch)) continue;
    function_(context_, member, size());
    if (remaining_.fetch_sub(1, std::memory_order_acq_rel) == 1) remaining_.notify_one();
  }
}

int hardware_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace verbatim
