#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim::accelerator {

/// A file of hardware/ as it was compiled in.
struct BuiltIn {
  std::string_view name;  ///< of the file, without its ending: "speq", "dram-ddr4-3200"
  std::string_view toml;
};

/// All files of hardware/.
std::span<const BuiltIn> built_in_hardware();

/// The file docs/results/simulated-clock/draft-thresholds.json as it was compiled in.
std::string_view built_in_thresholds();

}  // namespace verbatim::accelerator
