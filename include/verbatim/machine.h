#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace verbatim {

/// What a machine brings along for running models.
struct MachineReport {
  std::string cpu;                            ///< "Intel(R) Xeon(R) Processor", or "unknown"
  std::vector<std::string> instruction_sets;  ///< the paths with kernels that it can run, the lowest first
  std::string kernels;  ///< the kernels in use: those of the best path, or of the one that VERBATIM_ISA names
  int32_t threads = 0;  ///< the threads to compute with, unless another number is asked for
  std::string threads_reason;  ///< why so many: "8 physical cores with 16 hardware threads"
};

/// Describes this machine. Throws Error(kUsage) when the environment variable VERBATIM_ISA names no path, and
/// Error(kMachine) when it names one that this machine cannot run.
MachineReport describe_machine();

}  // namespace verbatim
