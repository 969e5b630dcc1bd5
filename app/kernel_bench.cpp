#include "kernel_bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>

#include "base/error.h"
#include "kernels/dispatch.h"

namespace verbatim::app {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMegabyte = int64_t{1} << 20;
/// Each copy is a mapping of its own, and the operating system limits how many there are.
constexpr int64_t kMostCopies = 1024;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Reads a buffer that no cache holds, all threads at once.
class BandwidthSweep {
 public:
  BandwidthSweep(int64_t bytes, ThreadTeam& team)
      : buffer_(static_cast<size_t>(bytes)), lines_(bytes / 64), team_(team) {
    split([this](int64_t first, int64_t bytes_here) { std::memset(buffer_.data() + first, 1, bytes_here); });
  }

  /// One sweep, in GB/s.
  double measure() {
    const auto read_all = kernels().read_all;
    const auto start = Clock::now();
    split([&](int64_t first, int64_t bytes) {
      sum_.fetch_xor(read_all(buffer_.data() + first, bytes), std::memory_order_relaxed);
    });
    const double gbs = static_cast<double>(lines_ * 64) / seconds_since(start) * 1e-9;
    all_.push_back(gbs);
    return gbs;
  }

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

/// Copies of one matrix that together do not fit in a cache. They are taken in turns.
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
       double run_seconds, ThreadTeam& team)
      : copies_(copies), team_(team) {
    result_.format = format;
    result_.reading = reading;
    result_.rows = rows;
    result_.shape = shape;
    const LinearWeight& weight = copies.first();
    bytes_ = bytes_read(weight, reading);
    x_ = Buffer<float>(static_cast<size_t>(rows * weight.padded_k()));
    y_ = Buffer<float>(static_cast<size_t>(rows * weight.padded_columns()));
    const std::vector<float> inputs = random_inputs(static_cast<size_t>(rows * shape.k));
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(inputs.begin() + r * shape.k, shape.k, x_.data() + r * weight.padded_k());
    }
    run();  // workspaces are allocated, threads awake
    const double seconds = run();
    calls_ = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(run_seconds / std::max(seconds, 1e-9))), 1,
                                 copies.size());
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

  /// Takes a run's seconds and the read bandwidth around it.
  void add(double seconds, double bandwidth_gbs) {
    seconds_.push_back(seconds);
    bandwidth_.push_back(bandwidth_gbs);
    ratios_.push_back(gbs(seconds) / bandwidth_gbs);
  }

  KernelResult result() const {
    KernelResult result = result_;
    result.rounds = static_cast<int>(seconds_.size());
    result.seconds = median(seconds_);
    result.gbs = gbs(result.seconds);
    result.bandwidth_gbs = median(bandwidth_);
    result.fraction = median(ratios_);
    const double weights = static_cast<double>(result.shape.n) * static_cast<double>(result.shape.k);
    result.tflops = 2.0 * static_cast<double>(result.rows) * weights / result.seconds * 1e-12;
    return result;
  }

 private:
  double gbs(double seconds) const { return static_cast<double>(bytes_) / seconds * 1e-9; }

  Copies& copies_;
  ThreadTeam& team_;
  KernelResult result_;
  int64_t bytes_ = 0;
  int64_t calls_ = 1;  // per run
  Buffer<float> x_;
  Buffer<float> y_;
  LinearWorkspace workspace_;
  std::vector<double> seconds_;
  std::vector<double> bandwidth_;
  std::vector<double> ratios_;
};

/// Runs the cases in turns, with a sweep between any two runs, so that a machine that slows down slows both.
void measure(std::vector<Case>& cases, const KernelBenchPlan& plan, BandwidthSweep& sweep) {
  const double budget = plan.seconds * static_cast<double>(cases.size());
  const auto start = Clock::now();
  double before = sweep.measure();
  for (int round = 0; round < plan.min_rounds || seconds_since(start) < budget; ++round) {
    for (Case& one : cases) {
      const double seconds = one.run();
      const double after = sweep.measure();
      one.add(seconds, 2.0 / (1.0 / before + 1.0 / after));
      before = after;
    }
  }
}

/// The multiplications of the bf16 product on registers, on all threads at once.
double peak_bf16_tflops(const KernelBenchPlan& plan, ThreadTeam& team) {
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
  while (timed(steps) < plan.run_seconds) steps *= 2;
  std::vector<double> rates;
  for (int round = 0; round < std::max(plan.min_rounds, 7); ++round) {
    const double seconds = timed(steps);
    rates.push_back(static_cast<double>(operations) / seconds * 1e-12);
  }
  return median(rates);
}

int64_t last_level_cache() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  int64_t size = 0;
  char unit = ' ';
  if (!(file >> size >> unit) || size <= 0) return 128 * kMegabyte;
  return unit == 'M' ? size * kMegabyte : unit == 'K' ? size * 1024 : size;
}

}  // namespace

int64_t default_working_set() {
  return std::clamp(4 * last_level_cache(), 512 * kMegabyte, 1280 * kMegabyte);
}

KernelBenchReport bench_kernels(const KernelBenchPlan& plan, const std::function<void(double)>& progress) {
  ThreadTeam team(plan.threads);
  KernelBenchReport report;
  report.peak_bf16_tflops = peak_bf16_tflops(plan, team);
  BandwidthSweep sweep(plan.working_set, team);
  const auto groups = static_cast<double>(plan.shapes.size() * plan.formats.size());
  double done = 0;
  for (const BenchShape& shape : plan.shapes) {
    for (const BenchFormat& format : plan.formats) {
      progress(done++ / groups);
      Copies copies(shape, format, plan.working_set, team);
      std::vector<Case> cases;
      cases.reserve(format.readings.size() * plan.rows.size());
      for (const Reading reading : format.readings) {
        for (const int64_t rows : plan.rows) {
          cases.emplace_back(copies, format.name, reading, rows, shape, plan.run_seconds, team);
        }
      }
      measure(cases, plan, sweep);
      for (const Case& one : cases) report.results.push_back(one.result());
    }
  }
  report.read_bandwidth_gbs = sweep.median_gbs();
  return report;
}

}  // namespace verbatim::app
