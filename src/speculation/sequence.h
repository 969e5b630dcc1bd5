#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kv/cache.h"

namespace verbatim {

/// The tokens of a text and their cache. Between steps the cache holds the verified keys and values of every
/// token but the last, which the next pass will evaluate.
struct Sequence {
  std::vector<int32_t> tokens;
  std::unique_ptr<KvCache> cache;
};

/// Adds the time from construction to destruction to a counter of seconds.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace verbatim
