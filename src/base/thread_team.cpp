#include "base/thread_team.h"

#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "base/matrix.h"

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

constexpr int64_t kMostBlocks = 0xffff;

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
  parts_ = std::vector<Part>(static_cast<size_t>(size));
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
  calls_.fetch_add(1, std::memory_order_release);
  calls_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadTeam::hand_out(const Job& job) {
  const int64_t members = size();
  job_ = job;
  // A part has at most kMostBlocks blocks, so that two of their numbers fit into half a word.
  job_.block = std::max(job.block, ceil_div(ceil_div(job.count, members), kMostBlocks));
  const uint32_t call = calls_.load(std::memory_order_relaxed) + 1;
  int64_t blocks = 0;
  for (int64_t part = 0; part < members; ++part) {
    blocks += ceil_div(part_begin(part + 1) - part_begin(part), job_.block);
  }
  unfinished_.store(static_cast<int32_t>(blocks), std::memory_order_relaxed);
  for (int64_t part = 0; part < members; ++part) {
    const int64_t end = ceil_div(part_begin(part + 1) - part_begin(part), job_.block);
    parts_[static_cast<size_t>(part)].left.store(uint64_t{call} << 32 | static_cast<uint64_t>(end),
                                                 std::memory_order_release);
  }
  calls_.store(call, std::memory_order_release);
  calls_.notify_all();
  work(0, call);
  int32_t left = 0;
  wait_until([&] { return (left = unfinished_.load(std::memory_order_acquire)) == 0; },
             [&] { unfinished_.wait(left, std::memory_order_acquire); });
}

/// Takes a block of a part in a call of split() and works on it: the next one for its owner, the last one for
/// others. False if nobody is needed, because all blocks of the part have been begun or the call is over. A
/// call ends only after all of its blocks are done, so a thread that holds one may read the job.
bool ThreadTeam::take_block(int member, int64_t part, uint32_t call) {
  std::atomic<uint64_t>& word = parts_[static_cast<size_t>(part)].left;
  uint64_t left = word.load(std::memory_order_acquire);
  int64_t index = 0;
  while (true) {
    const auto first = static_cast<int64_t>(left >> 16 & kMostBlocks);
    const auto end = static_cast<int64_t>(left & kMostBlocks);
    if (left >> 32 != call || first == end) return false;
    const bool own = part == member;
    index = own ? first : end - 1;
    if (word.compare_exchange_weak(left, own ? left + (uint64_t{1} << 16) : left - 1,
                                   std::memory_order_acq_rel, std::memory_order_acquire)) {
      break;
    }
  }
  const int64_t begin = part_begin(part) + index * job_.block;
  job_.function(job_.context, member, begin, std::min(begin + job_.block, part_begin(part + 1)));
  return true;
}

/// Works on blocks of a call of split() until no more are left for this member: those of its own part, then
/// those of others. Member 0, who waits for the end, looks at every part; the others only at those one, two,
/// four and so on behind their own, so that large teams do not spend the end of a call on looking.
void ThreadTeam::work(int member, uint32_t call) {
  int32_t done = 0;
  for (int distance = 0; distance < size();
       distance = distance == 0 || member == 0 ? distance + 1 : 2 * distance) {
    while (take_block(member, (member + distance) % size(), call)) ++done;
  }
  // A thread reports once, not for every block, because all report to the same word.
  if (done > 0 && unfinished_.fetch_sub(done, std::memory_order_acq_rel) == done) unfinished_.notify_one();
}

void ThreadTeam::serve(int member) {
  uint32_t seen = 0;
  while (true) {
    uint32_t call = seen;
    wait_until([&] { return (call = calls_.load(std::memory_order_acquire)) != seen; },
               [&] { calls_.wait(seen, std::memory_order_acquire); });
    seen = call;
    if (stop_.load(std::memory_order_relaxed)) return;
    work(member, call);
  }
}

}  // namespace verbatim
