#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace verbatim {

/// The number of items that a thread takes at a time, given the bytes that one of them reads: a multiple of
/// `multiple`, the number of items that a kernel takes side by side, that is read in some tens of
/// microseconds. So a thread that the machine does not run at the moment holds little that others wait for,
/// and what beginning a block costs does not show.
constexpr int64_t items_per_block(int64_t bytes_per_item, int64_t multiple) {
  constexpr int64_t kBlockBytes = int64_t{256} << 10;
  const int64_t bytes = bytes_per_item * multiple;
  return bytes <= 0 || bytes > kBlockBytes / 2 ? multiple : (kBlockBytes + bytes / 2) / bytes * multiple;
}

/// A fixed team of threads for fork-join work that lasts microseconds. The caller is member 0 and works too;
/// the others spin briefly, then yield, then sleep.
///
/// Items are handed out in blocks. Every member begins with a contiguous part of the items that is its own,
/// the same whenever as many items are split, so that a core reads the same memory pass after pass and in
/// order. A member that is done takes blocks from the ends of the other members' parts. A thread that the
/// machine does not run at the moment thus delays nobody with blocks that it has not begun.
///
/// A team serves one caller at a time. Results must not depend on the size of the team or on who takes what:
/// members split independent outputs among themselves, never a sum.
class ThreadTeam {
 public:
  /// Makes a team of `size` ≥ 1 members, the caller included. Throws Error(kMachine) if the machine does not
  /// give so many threads.
  explicit ThreadTeam(int size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Splits 0 .. count - 1 into blocks of at most `block` ≥ 1 items and calls work(member, begin, end) for
  /// every block; returns when all calls have ended. `member` is the one whose thread makes the call, from 0
  /// to size() - 1: it makes one call at a time, so scratch memory may belong to it. A team of one makes a
  /// single call. `work` must not throw and must not call the team again. Does not allocate.
  template <typename Work>
  void split(int64_t count, int64_t block, Work&& work) {
    if (count <= 0) return;
    if (count == 1 || workers_.empty()) {
      work(0, int64_t{0}, count);
      return;
    }
    using Callable = std::remove_reference_t<Work>;
    hand_out({.function = [](void* context, int member, int64_t begin,
                             int64_t end) { (*static_cast<Callable*>(context))(member, begin, end); },
              .context = const_cast<void*>(static_cast<const void*>(&work)),
              .count = count,
              .block = block});
  }

  /// Splits 0 .. count - 1 into ranges, some for each member, and calls work(begin, end) for every one. If
  /// `count` is 1, the call is made on the calling thread.
  template <typename Work>
  void split(int64_t count, Work&& work) {
    const int64_t block = count / (kRangesPerMember * size());
    split(count, block < 1 ? 1 : block, [&](int, int64_t begin, int64_t end) { work(begin, end); });
  }

  /// Calls work(share, size()) once for every share from 0 to size() - 1, each on any thread of the team, and
  /// returns when all calls have ended. For work that needs the memory of one share from beginning to end.
  template <typename Work>
  void run(Work&& work) {
    const int shares = size();
    split(shares, 1, [&](int, int64_t begin, int64_t end) {
      for (int64_t share = begin; share < end; ++share) work(static_cast<int>(share), shares);
    });
  }

 private:
  using Function = void (*)(void* context, int member, int64_t begin, int64_t end);

  static constexpr int64_t kRangesPerMember = 4;

  /// What a call of split() asks for.
  struct Job {
    Function function = nullptr;
    void* context = nullptr;
    int64_t count = 0;
    int64_t block = 0;
  };

  /// The blocks of a member's part that nobody has begun: the number of the call in the upper 32 bits, then
  /// the first block and the block after the last, counted from the beginning of the part, in 16 bits each.
  /// The number of the call keeps a thread that comes late from beginning a block of a later call.
  struct alignas(64) Part {
    std::atomic<uint64_t> left{0};
  };

  void hand_out(const Job& job);
  int64_t part_begin(int64_t part) const { return job_.count * part / size(); }
  bool take_block(int member, int64_t part, uint32_t call);
  void work(int member, uint32_t call);
  void serve(int member);
  void stop();

  std::vector<Part> parts_;  // by member
  std::vector<std::thread> workers_;
  Job job_;
  alignas(64) std::atomic<uint32_t> calls_{0};      // a change wakes the workers
  alignas(64) std::atomic<int32_t> unfinished_{0};  // blocks of the current call that are not done
  alignas(64) std::atomic<bool> stop_{false};
};

}  // namespace verbatim
