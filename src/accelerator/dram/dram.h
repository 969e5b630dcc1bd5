#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim::accelerator {

/// A memory as hardware/dram-*.toml describes it. Its channels work side by side on the same addresses, so
/// that one of them stands for all. Times are in cycles of the memory's clock, with the names of the JEDEC
/// standards.
struct Dram {
  std::string name;

  int64_t channels = 0;
  int64_t channel_bits = 0;
  int64_t burst_length = 0;  ///< beats
  int64_t bank_groups = 0;
  int64_t banks_per_group = 0;
  int64_t row_bytes = 0;  ///< of a bank, in all devices of a channel

  int64_t clock_ps = 0;
  int64_t beats_per_clock = 0;
  int64_t tCL = 0;
  int64_t tCWL = 0;
  int64_t tRCD = 0;
  int64_t tRP = 0;
  int64_t tRP_all = 0;  ///< of precharging all banks
  int64_t tRAS = 0;
  int64_t tRC = 0;
  int64_t tCCD_S = 0;
  int64_t tCCD_L = 0;
  int64_t tRRD_S = 0;
  int64_t tRRD_L = 0;
  int64_t tFAW = 0;
  int64_t tRTP = 0;
  int64_t tWR = 0;
  int64_t tWTR_S = 0;
  int64_t tWTR_L = 0;
  int64_t tRFC = 0;
  int64_t tREFI = 0;

  std::optional<double> pj_per_bit;  ///< of reading; nothing: not known
  std::string energy_source;

  int64_t banks() const { return bank_groups * banks_per_group; }
  /// The time of a burst on the pins, in cycles.
  int64_t burst_cycles() const { return burst_length / beats_per_clock; }
  /// The bytes of a burst of one channel.
  int64_t burst_bytes() const { return channel_bits / 8 * burst_length; }
  int64_t bursts_per_row() const { return row_bytes / burst_bytes(); }
  /// Cycles from one read to the next when reads go round all bank groups.
  int64_t pace() const;
  /// Bytes per second of all channels, refresh not counted.
  double peak_bytes_per_second() const;
};

/// Reads a memory. Throws Error(kBadInput), naming `where`, for values that are missing, unknown, out of
/// range or impossible together, as a tRC below tRAS + tRP is.
Dram parse_dram(std::string_view toml, const std::string& where);

/// Throws Error(kBadInput), naming `where`, unless the times can be kept together.
void check_timings(const Dram& dram, const std::string& where);

/// A built-in memory by name ("ddr4-3200"), or the one in a file whose name ends in ".toml". Throws
/// Error(kBadInput), listing the names, for another.
Dram load_dram(const std::string& name_or_path);

/// The names of the built-in memories.
std::vector<std::string> dram_names();

}  // namespace verbatim::accelerator
