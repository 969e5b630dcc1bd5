#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace verbatim::accelerator {

/// What a machine did, summed over blocks.
struct Totals {
  int64_t bytes_read = 0;     ///< from memory: weights, keys and values, activations that did not stay
  int64_t bytes_written = 0;  ///< to memory: keys and values, activations that did not stay
  int64_t weight_bytes = 0;   ///< part of bytes_read
  int64_t kv_bytes = 0;       ///< part of bytes_read: keys and values
  int64_t macs = 0;           ///< products that a row's result needs
  int64_t array_cycles = 0;   ///< in which the array worked
  int64_t memory_ps = 0;      ///< in which the memory transferred, refresh not counted
  int64_t sfu_cycles = 0;     ///< in which the SFU worked
  int64_t blocks = 0;

  bool operator==(const Totals&) const = default;
  Totals& operator+=(const Totals& other);
  /// Adds what happened between two sums, so many times.
  void add_times(const Totals& after, const Totals& before, int64_t times);
};

/// A piece of work that is loaded as a whole and then multiplied as a whole.
struct Block {
  int64_t read_bytes = 0;    ///< loaded into the buffer for weights, and with them what else must be read
  int64_t write_bytes = 0;   ///< written to memory beside them
  int64_t weight_bytes = 0;  ///< part of read_bytes
  int64_t kv_bytes = 0;      ///< part of read_bytes
  int64_t array_cycles = 0;
  int64_t macs = 0;
  int64_t sfu_cycles = 0;  ///< that the SFU works on the sums; 0: they stay in the output buffer
  /// Whether it begins new sums, for which a part of the output buffer has to be free, or adds to those that
  /// are there.
  bool begins_sums = true;
  /// What has to be ready before the array may begin: nothing but the block itself, all that the SFU was ever
  /// given, or the work that was noted under a number.
  static constexpr int8_t kNothing = -1;
  static constexpr int8_t kEverything = -2;
  int8_t waits_for = kNothing;
  /// Notes the end of the SFU's work on this block under a number, 0 or 1; -1: under none.
  int8_t noted = -1;

  bool operator==(const Block&) const = default;
};

/// When a block was loaded, multiplied and taken by the SFU, each from a moment to another, in ps. A block
/// that the SFU does not take has nothing there.
struct BlockTimes {
  int64_t load_begin = 0;
  int64_t load_end = 0;
  int64_t array_begin = 0;
  int64_t array_end = 0;
  int64_t sfu_begin = 0;
  int64_t sfu_end = 0;
};

/// Blocks that come in this order so many times.
struct Segment {
  std::vector<Block> blocks;
  int64_t times = 1;

  bool operator==(const Segment&) const = default;
};

}  // namespace verbatim::accelerator
