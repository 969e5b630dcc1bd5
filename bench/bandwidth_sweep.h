#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/median.h"
#include "base/stopwatch.h"
#include "base/thread_team.h"

namespace verbatim::bench {

// What the benchmarks share that compare some work with the speed at which memory can be read.

/// Bytes that no cache holds: four times the last-level cache and at least 512 MB, but no more than fits
/// beside weights of the same size in 3 GB.
int64_t default_working_set();

/// Reads a buffer that no cache holds, all threads at once.
class BandwidthSweep {
 public:
  /// Takes `bytes` of memory. The team must outlive the sweep.
  BandwidthSweep(int64_t bytes, ThreadTeam& team);

  /// One sweep, in GB/s.
  double measure();
  /// The median of all sweeps so far, at least one.
  double median_gbs() const { return median(all_); }

 private:
  template <typename Work>
  void split(Work&& work) {
    team_.split(lines_, [&](int64_t begin, int64_t end) { work(begin * 64, (end - begin) * 64); });
  }

  AlignedBuffer buffer_;
  int64_t lines_;
  ThreadTeam& team_;
  std::atomic<uint64_t> sum_ = 0;  // so that no read can be left out
  std::vector<double> all_;
};

/// Runs of the same work, which reads so many bytes from memory each time, and the read bandwidth around each
/// of them. All but count() are medians over at least one run.
class TimedRuns {
 public:
  explicit TimedRuns(int64_t bytes) : bytes_(bytes) {}

  void add(double seconds, double bandwidth_gbs);

  int count() const { return static_cast<int>(seconds_.size()); }
  double seconds() const { return median(seconds_); }
  double gbs() const { return gbs(seconds()); }
  double bandwidth_gbs() const { return median(bandwidth_); }
  /// Of the bandwidth: the median of the runs' own ratios, which stays put while a machine's speed drifts.
  double fraction() const { return median(ratios_); }
  /// Of these runs' seconds to another case's in the same rounds.
  double seconds_relative_to(const TimedRuns& other) const;

 private:
  double gbs(double seconds) const { return static_cast<double>(bytes_) / seconds * 1e-9; }

  int64_t bytes_;
  std::vector<double> seconds_;
  std::vector<double> bandwidth_;
  std::vector<double> ratios_;
};

/// Runs the cases in turns, with a sweep between any two that count, so that a machine that slows down slows
/// both: at least `min_rounds` rounds, and more until `seconds_per_case` have passed for each case. A case
/// has run(), which returns the seconds that count, and runs(), where they and the bandwidth around them go.
/// `progress`, if there is one, hears the fraction that is done.
template <typename Case>
void alternate(std::vector<Case>& cases, double seconds_per_case, int min_rounds, BandwidthSweep& sweep,
               const std::function<void(double)>& progress = {}) {
  const double budget = seconds_per_case * static_cast<double>(cases.size());
  const auto start = std::chrono::steady_clock::now();
  double before = sweep.measure();
  for (int round = 0; round < min_rounds || seconds_since(start) < budget; ++round) {
    if (progress) {
      const double rounds_done = static_cast<double>(round) / min_rounds;
      progress(budget > 0 ? std::min({1.0, rounds_done, seconds_since(start) / budget}) : rounds_done);
    }
    // This run does not count: on a virtual machine the run after the longest case may take several times as
    // long as otherwise, and that would always be the first case's.
    if (cases.size() > 1) cases.front().run();
    for (Case& one : cases) {
      const double seconds = one.run();
      const double after = sweep.measure();
      one.runs().add(seconds, 2.0 / (1.0 / before + 1.0 / after));
      before = after;
    }
  }
}

}  // namespace verbatim::bench
