#pragma once

#include <random>

#include "accelerator/dram/dram.h"
#include "accelerator/parameters/hardware.h"

namespace verbatim::test {

/// Picks one of several values.
template <typename T>
T any_of(std::mt19937_64& random, std::initializer_list<T> values) {
  return *(values.begin() + random() % values.size());
}

/// A machine with random sizes, latencies and mapping; no two of them alike.
inline accelerator::Hardware random_hardware(std::mt19937_64& random) {
  using accelerator::Hardware;
  Hardware hardware = accelerator::load_hardware("speq");
  hardware.tiles = any_of<int64_t>(random, {1, 2, 8, 32});
  hardware.pes = any_of<int64_t>(random, {16, 64, 128, 200});
  hardware.clock_mhz = any_of<int64_t>(random, {100, 250, 500, 1000, 2000});
  hardware.draft_weights = any_of<int64_t>(random, {1, 3, 4});
  hardware.groups_lie = any_of(random, {Hardware::GroupsLie::kAcrossPes, Hardware::GroupsLie::kWithinPe});
  hardware.tiles_share = any_of(
      random, {Hardware::TilesShare::kOutputs, Hardware::TilesShare::kInputs, Hardware::TilesShare::kRows});
  hardware.pipeline_cycles = static_cast<int64_t>(random() % 40);
  hardware.weight_buffer = any_of<int64_t>(random, {64, 128, 512}) << 10;
  hardware.activation_buffer = any_of<int64_t>(random, {16, 512}) << 10;
  hardware.output_buffer = any_of<int64_t>(random, {64, 512}) << 10;
  hardware.double_buffered = random() % 4 != 0;
  hardware.full_bits = any_of(random, {16.0, 13.03125, 8.0});
  hardware.exceptions = any_of(random, {0.0, 0.001, 0.05});
  hardware.sfu_lanes = any_of<int64_t>(random, {1, 16, 64, 1024});
  hardware.sfu_latency_cycles = static_cast<int64_t>(random() % 100);
  return hardware;
}

/// One of the built-in memories with another number of channels.
inline accelerator::Dram random_dram(std::mt19937_64& random) {
  const std::vector<std::string> names = accelerator::dram_names();
  accelerator::Dram dram = accelerator::load_dram(names[random() % names.size()]);
  dram.channels = any_of<int64_t>(random, {1, 2, 3, 4, 8, 16});
  return dram;
}

}  // namespace verbatim::test
