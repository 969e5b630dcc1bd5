#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim::accelerator {

/// The mode that an array of PEs multiplies in.
enum class Mode {
  kFull,   ///< one weight for each PE and cycle
  kDraft,  ///< SPEQ's quantize mode: draft_weights of them
};

/// A machine as hardware/*.toml describes it; docs/accelerator.md says where each value comes from.
struct Hardware {
  std::string name;
  std::string dram;  ///< name of a memory, or a file

  // The array.
  int64_t tiles = 0;
  int64_t pes = 0;  ///< in a tile
  int64_t clock_mhz = 0;
  int64_t draft_weights = 0;  ///< 0: the machine has no quantize mode
  enum class GroupsLie { kAcrossPes, kWithinPe } groups_lie = GroupsLie::kAcrossPes;
  enum class TilesShare { kOutputs, kInputs, kRows } tiles_share = TilesShare::kOutputs;
  int64_t pipeline_cycles = 0;

  // The buffers, in bytes.
  int64_t weight_buffer = 0;
  int64_t activation_buffer = 0;
  int64_t output_buffer = 0;
  bool double_buffered = true;
  /// The outputs and inputs of a block of weights, the same in both modes; 0: as many as fit.
  int64_t block_outputs = 0;
  int64_t block_inputs = 0;

  // What is stored in memory, in bits.
  double full_bits = 0;   ///< a weight as a full pass reads it
  double draft_bits = 0;  ///< a weight as a draft pass reads it
  double kv_bits = 0;
  double activation_bits = 0;
  double exceptions = 0;      ///< share of weights kept beside the codes
  double exception_bits = 0;  ///< of one of them

  // The SFU.
  int64_t sfu_lanes = 0;  ///< elements per cycle
  int64_t sfu_latency_cycles = 0;
  /// How often a value passes through its lanes.
  int64_t norm_passes = 0;
  int64_t rotation_passes = 0;
  int64_t softmax_passes = 0;
  int64_t activation_passes = 0;
  int64_t logit_passes = 0;

  /// Power in milliwatts while the array works in a mode, memory not included; nothing: not known.
  std::optional<double> full_mw;
  std::optional<double> draft_mw;

  /// The time of a cycle in ps.
  int64_t cycle_ps() const { return 1'000'000 / clock_mhz; }
  /// Weights that a PE multiplies in a cycle.
  int64_t lanes(Mode mode) const { return mode == Mode::kDraft ? draft_weights : 1; }
  double weight_bits(Mode mode) const { return mode == Mode::kDraft ? draft_bits : full_bits; }
  /// The part of a buffer that one block may take.
  int64_t share_of(int64_t buffer) const { return double_buffered ? buffer / 2 : buffer; }
};

/// Reads a machine. Throws Error(kBadInput), naming `where`, for values that are missing, unknown, out of
/// range or contradict each other.
Hardware parse_hardware(std::string_view toml, const std::string& where);

/// A built-in machine by name, or the one in a file whose name ends in ".toml". Throws Error(kBadInput),
/// listing the names, for another.
Hardware load_hardware(const std::string& name_or_path);

/// The names of the built-in machines.
std::vector<std::string> hardware_names();

}  // namespace verbatim::accelerator
