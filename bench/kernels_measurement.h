#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/random_weights.h"

namespace verbatim::bench {

/// What to measure and for how long.
struct KernelBenchPlan {
  std::vector<BenchShape> shapes;
  std::vector<BenchFormat> formats;
  std::vector<int64_t> rows;
  int threads = 1;
  double seconds = 1.0;       ///< per case
  int min_rounds = 7;         ///< however long they take
  double run_seconds = 0.02;  ///< a single timing lasts about this long, where the weights are large enough
  int64_t working_set = 0;    ///< bytes of weights, and bytes of the buffer for the read bandwidth
  bool in_cache = false;      ///< one copy of the weights, again and again, instead
};

/// One matrix product in one reading. All numbers are medians over rounds.
struct KernelResult {
  std::string format;
  Reading reading = Reading::kFull;
  int64_t rows = 0;
  BenchShape shape;
  int rounds = 0;
  double seconds = 0;        ///< one product
  double gbs = 0;            ///< stored bytes that the reading needs, over the seconds
  double bandwidth_gbs = 0;  ///< of the sweeps before and after each of the runs
  double fraction = 0;       ///< of the read bandwidth: the median of the rounds' ratios
  double tflops = 0;
};

struct KernelBenchReport {
  double read_bandwidth_gbs = 0;
  double peak_bf16_tflops = 0;
  std::vector<KernelResult> results;
};

/// The multiplications of the bf16 product on registers, on all threads at once, in 10^12 operations per
/// second: the median of `rounds` runs of about `run_seconds`.
double peak_bf16_tflops(double run_seconds, int rounds, ThreadTeam& team);

/// Measures every case of the plan; `progress` hears the fraction that is done.
KernelBenchReport measure_kernels(const KernelBenchPlan& plan, const std::function<void(double)>& progress);

}  // namespace verbatim::bench
