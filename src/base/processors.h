#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace verbatim {

/// What the operating system says of the processors that a process may run on. A processor is what it
/// schedules: a core, or one of a core's hardware threads.
struct Processors {
  int allowed = 1;              ///< the processors in the affinity mask
  int cores = 1;                ///< the physical cores that these belong to
  int slow_cores = 0;           ///< those of the cores that are less than 0.8 times as fast as the fastest
  int useless_cores = 0;        ///< those of the slow cores that are less than half as fast as the fastest
  int nodes = 1;                ///< the NUMA nodes that the processors belong to
  std::optional<double> quota;  ///< the processors' worth of time that control groups grant, if they limit it
};

/// Returns the text of a file, or nothing if it cannot be read.
using FileReader = std::function<std::string(const std::string& path)>;

/// Describes the processors with these numbers by the files of Linux under /sys and /proc. What is missing or
/// makes no sense is passed over: a processor of which nothing is known counts as a core of its own, as fast
/// as any.
Processors describe_processors(std::span<const int> allowed, const FileReader& read);
/// Describes the processors of this process.
Processors describe_processors();

/// A number of threads, and in some words why it is this one.
struct ThreadChoice {
  int threads = 1;
  std::string reason;  ///< "8 physical cores with 16 hardware threads"
};

/// Chooses how many threads compute: one for every physical core that is at least half as fast as the
/// fastest, but not more than the quota, which is rounded to the nearest number from 1 on.
ThreadChoice choose_threads(const Processors& processors);

/// The number of threads that this process computes with unless it is told another, at least 1.
int hardware_threads();

}  // namespace verbatim
