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
  bool portable = false;  ///< whether the kernels in use give the bytes that they give on every machine
  std::string portable_kernels;  ///< those that use_portable_kernels() chooses
  int32_t threads = 0;           ///< the threads to compute with, unless another number is asked for
  std::string threads_reason;    ///< why so many: "8 physical cores with 16 hardware threads"
};

/// Describes this machine. Throws Error(kUsage) when the environment variable VERBATIM_ISA names no path or
/// VERBATIM_PORTABLE is neither 0 nor 1, and Error(kMachine) when this machine cannot run the path that
/// VERBATIM_ISA names.
MachineReport describe_machine();

/// Makes everything in this process compute with kernels that give the same bits on every processor, so that
/// a lossless recipe gives the same bytes on all machines. Setting VERBATIM_PORTABLE=1 in the environment
/// does the same. It has to come before a model is loaded: throws Error(kUsage) if other kernels, whose bits
/// are not these, are in use already. Otherwise it may be called again, and from any thread.
void use_portable_kernels();

}  // namespace verbatim
