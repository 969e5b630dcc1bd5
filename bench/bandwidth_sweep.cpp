#include "bench/bandwidth_sweep.h"

#include <cstring>
#include <fstream>

#include "kernels/dispatch.h"

namespace verbatim::bench {

namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;

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

BandwidthSweep::BandwidthSweep(int64_t bytes, ThreadTeam& team)
    : buffer_(static_cast<size_t>(bytes)), lines_(bytes / 64), team_(team) {
  split([this](int64_t first, int64_t bytes_here) { std::memset(buffer_.data() + first, 1, bytes_here); });
}

double BandwidthSweep::measure() {
  const auto read_all = kernels().read_all;
  const auto start = std::chrono::steady_clock::now();
  split([&](int64_t first, int64_t bytes) {
    sum_.fetch_xor(read_all(buffer_.data() + first, bytes), std::memory_order_relaxed);
  });
  const double gbs = static_cast<double>(lines_ * 64) / seconds_since(start) * 1e-9;
  all_.push_back(gbs);
  return gbs;
}

void TimedRuns::add(double seconds, double bandwidth_gbs) {
  seconds_.push_back(seconds);
  bandwidth_.push_back(bandwidth_gbs);
  ratios_.push_back(gbs(seconds) / bandwidth_gbs);
}

double TimedRuns::seconds_relative_to(const TimedRuns& other) const {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(seconds_.size(), other.seconds_.size()); ++i) {
    ratios.push_back(seconds_[i] / other.seconds_[i]);
  }
  return median(std::move(ratios));
}

}  // namespace verbatim::bench
