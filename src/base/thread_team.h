#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace verbatim {

/// A fixed team of threads for fork-join work that lasts microseconds. The caller is member 0 and works too;
/// the others spin briefly, then yield, then sleep. A caller that is done with its own share takes over the
/// shares that no other thread has begun, so that a thread which the machine does not run at the moment
/// delays nobody. A team serves one caller at a time. Results must not depend on the size of the team:
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

  /// Calls work(member, size()) once for every member, and returns when all calls have ended. A call for
  /// another member than 0 may be made on the calling thread. `work` must not throw and must not call run()
  /// again. Does not allocate.
  template <typename Work>
  void run(Work&& work) {
    using Callable = std::remove_reference_t<Work>;
    run_erased([](void* context, int member, int size) { (*static_cast<Callable*>(context))(member, size); },
               const_cast<void*>(static_cast<const void*>(&work)));
  }

  /// Splits 0 .. count - 1 into one contiguous range per member and calls work(begin, end) for every range
  /// that is not empty. If `count` is 1, the call is made on the calling thread.
  template <typename Work>
  void split(int64_t count, Work&& work) {
    if (count <= 1 || workers_.empty()) {
      if (count > 0) work(int64_t{0}, count);
      return;
    }
    run([&](int member, int size) {
      const int64_t begin = count * member / size;
      const int64_t end = count * (member + 1) / size;
      if (begin < end) work(begin, end);
    });
  }

 private:
  using Function = void (*)(void*, int, int);

  /// The share of a member in the current call of run(): the number of the last call in which a thread began
  /// it.
  struct alignas(64) Share {
    std::atomic<uint32_t> begun{0};
  };

  void run_erased(Function function, void* context);
  bool begin_share(int member, uint32_t epoch);
  void serve(int member);
  void stop();

  std::vector<Share> shares_;  // by member
  std::vector<std::thread> workers_;
  Function function_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<uint32_t> epoch_{0};  // counts calls of run; a change wakes the workers
  alignas(64) std::atomic<int32_t> remaining_{
      0};  // shares of the current call, but for the caller's, that are not done
  alignas(64) std::atomic<bool> stop_{false};
};

/// The number of hardware threads that this process may run on, at least 1.
int hardware_threads();

}  // namespace verbatim
