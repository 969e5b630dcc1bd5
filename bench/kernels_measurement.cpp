#include "bench/kernels_measurement.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <random>

#include "bench/bandwidth_sweep.h"
#include "kernels/dispatch.h"

namespace verbatim::bench {

namespace {

using Clock = std::chrono::steady_clock;

/// Each copy is a mapping of its own, and the operating system limits how many there are.
constexpr int64_t kMostCopies = 1024;

/// Copies of one matrix that together do not fit in a cache, or a single one. They are taken in turns.
class Copies {
 public:
  Copies(BenchShape shape, const BenchFormat& format, int64_t working_set, ThreadTeam& team) {
    weights_.push_back(make_weight(shape, format, team));
    int64_t bytes = 1;
    for (const Reading reading : format.readings) {
      bytes = std::max(bytes, bytes_read(weights_.front(), reading));
    }
    const int64_t count = std::clamp<int64_t>(working_set / bytes, 1, kMostCopies);
    while (size() < count) weights_.push_back(clone(weights_.front()));
  }

  int64_t size() const { return static_cast<int64_t>(weights_.size()); }
  const LinearWeight& first() const { return weights_.front(); }
  const LinearWeight& next() {
    at_ = (at_ + 1) % weights_.size();
    return weights_[at_];
  }

 private:
  std::vector<LinearWeight> weights_;
  size_t at_ = 0;
};

std::vector<float> random_inputs(size_t count) {
  std::mt19937 generator(2);
  std::normal_distribution<float> normal;
  std::vector<float> inputs(count);
  for (float& input : inputs) input = normal(generator);
  return inputs;
}

/// One reading of the copies with one number of rows.
class Case {
 public:
  Case(Copies& copies, const std::string& format, Reading reading, int64_t rows, BenchShape shape,
       const KernelBenchPlan& plan, ThreadTeam& team)
      : copies_(copies), team_(team), runs_(bytes_read(copies.first(), reading)) {
    result_.format = format;
    result_.reading = reading;
    result_.rows = rows;
    result_.shape = shape;
    const LinearWeight& weight = copies.first();
    x_ = Buffer<float>(static_cast<size_t>(rows * weight.padded_k()));
    y_ = Buffer<float>(static_cast<size_t>(rows * weight.padded_columns()));
    const std::vector<float> inputs = random_inputs(static_cast<size_t>(rows * shape.k));
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(inputs.begin() + r * shape.k, shape.k, x_.data() + r * weight.padded_k());
    }
    run();  // workspaces are allocated, threads awake
    const double seconds = run();
    const auto calls = static_cast<int64_t>(std::ceil(plan.run_seconds / std::max(seconds, 1e-9)));
    calls_ = std::clamp<int64_t>(calls, 1, plan.in_cache ? std::max<int64_t>(calls, 1) : copies.size());
  }

  /// The seconds of one product, averaged over a run.
  double run() {
    const auto start = Clock::now();
    for (int64_t call = 0; call < calls_; ++call) {
      const LinearWeight& weight = copies_.next();
      linear(weight, result_.reading, Matrix<const float>(x_.data(), result_.rows, weight.padded_k()),
             Matrix<float>(y_.data(), result_.rows, weight.padded_columns()), workspace_, team_);
    }
    return seconds_since(start) / static_cast<double>(calls_);
  }

  TimedRuns& runs() { return runs_; }

  KernelResult result() const {
    KernelResult result = result_;
    result.rounds = runs_.count();
    result.seconds = runs_.seconds();
    result.gbs = runs_.gbs();
    result.bandwidth_gbs = runs_.bandwidth_gbs();
    result.fraction = runs_.fraction();
    const double weights = static_cast<double>(result.shape.n) * static_cast<double>(result.shape.k);
    result.tflops = 2.0 * static_cast<double>(result.rows) * weights / result.seconds * 1e-12;
    return result;
  }

 private:
  Copies& copies_;
  ThreadTeam& team_;
  KernelResult result_;
  int64_t calls_ = 1;  // per run
  Buffer<float> x_;
  Buffer<float> y_;
  LinearWorkspace workspace_;
  TimedRuns runs_;
};

}  // namespace

double peak_bf16_tflops(double run_seconds, int rounds, ThreadTeam& team) {
  const auto multiply = kernels().multiply_registers;
  std::atomic<int64_t> operations = 0;
  const auto timed = [&](int64_t steps) {
    operations = 0;
    const auto start = Clock::now();
    team.run([&](int, int) {
      float sums[16];
      operations += multiply(steps, sums);
    });
    return seconds_since(start);
  };
  int64_t steps = 1000;  // enough that waking the threads does not count
  while (timed(steps) < run_seconds) steps *= 2;
  std::vector<double> rates;
  for (int round = 0; round < rounds; ++round) {
    const double seconds = timed(steps);
    rates.push_back(static_cast<double>(operations) / seconds * 1e-12);
  }
  return median(rates);
}

KernelBenchReport measure_kernels(const KernelBenchPlan& plan, const std::function<void(double)>& progress) {
  ThreadTeam team(plan.threads);
  KernelBenchReport report;
  report.peak_bf16_tflops = peak_bf16_tflops(plan.run_seconds, std::max(plan.min_rounds, 7), team);
  BandwidthSweep sweep(plan.working_set, team);
  const auto groups = static_cast<double>(plan.shapes.size() * plan.formats.size());
  double done = 0;
  for (const BenchShape& shape : plan.shapes) {
    for (const BenchFormat& format : plan.formats) {
      progress(done++ / groups);
      Copies copies(shape, format, plan.in_cache ? 0 : plan.working_set, team);
      std::vector<Case> cases;
      cases.reserve(format.readings.size() * plan.rows.size());
      for (const Reading reading : format.readings) {
        for (const int64_t rows : plan.rows) {
          cases.emplace_back(copies, format.name, reading, rows, shape, plan, team);
        }
      }
      alternate(cases, plan.seconds, plan.min_rounds, sweep);
      for (const Case& one : cases) report.results.push_back(one.result());
    }
  }
  report.read_bandwidth_gbs = sweep.median_gbs();
  return report;
}

}  // namespace verbatim::bench
