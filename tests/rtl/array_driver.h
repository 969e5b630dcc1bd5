#pragma once

#include <bit>
#include <deque>
#include <random>
#include <vector>

#include "accelerator/cycles/engine.h"
#include "accelerator/cycles/product.h"
#include "accelerator/function/stored_weight.h"
#include "accelerator/function/tile.h"

namespace verbatim::test {

/// The sizes of the array in RTL as it is built for the tests; those of rtl/array.sv.
struct ArraySizes {
  int64_t tiles = 2;
  int64_t pes = 8;
  int64_t word_bytes = 8;
  int64_t half_of_weights = 4096;  ///< bytes
  int64_t half_of_sums = 1024;     ///< bytes
  int64_t lanes = 4;               ///< of the drain
  int64_t pipeline_cycles = 10;
};

/// A product for the array, and the memory that its words come from. All times are in cycles.
struct ArrayCase {
  bool draft = false;
  bool single = false;
  int64_t rows = 1;
  int64_t outputs = 1;
  int64_t inputs = 128;
  int64_t block_outputs = 1;
  int64_t block_inputs = 128;
  int64_t passes = 1;
  int64_t drain_latency = 0;
  int64_t pace = 1;      ///< from a word to the next
  int64_t interval = 1;  ///< between refreshes
  int64_t outage = 0;    ///< of a refresh, in which no word is granted
  int64_t latency = 0;   ///< from the grant of a word to its arrival
};

/// Any product that the small array's buffers hold. Half of them wait for the memory most of the time, and
/// half for the tiles or the drain.
inline ArrayCase random_case(std::mt19937_64& random) {
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); };
  ArrayCase one;
  one.draft = random() % 2 == 0;
  one.single = random() % 4 == 0;
  one.rows = 1 + below(4);
  one.outputs = 1 + below(48);
  one.inputs = one.draft ? 128 * (1 + below(5)) : 1 + below(640);
  one.block_inputs = 128 * (1 + below(3));
  one.block_outputs = 1 + below((one.draft ? 7900 : 2048) / one.block_inputs);
  one.passes = 1 + below(3);
  one.drain_latency = random() % 2 == 0 ? below(10) : below(500);
  one.pace = random() % 2 == 0 ? 1 : 1 + below(6);
  one.interval = 50 + below(500);
  one.outage = below(one.interval / 2);
  one.latency = below(30);
  return one;
}

/// The operands of a product, and what comes of them by the model in C++.
struct ArrayData {
  std::vector<uint16_t> activations;                            ///< [row][input]
  std::vector<std::vector<accelerator::StoredWeight>> weights;  ///< [output][input]
  std::vector<std::vector<uint16_t>> scales;                    ///< [output][group]: BF16
};

inline ArrayData random_data(const ArrayCase& one, std::mt19937_64& random) {
  ArrayData data;
  for (int64_t i = 0; i < one.rows * one.inputs; ++i) {
    // Numbers about one, some of them small, none infinite: sums are to say something.
    const auto bits = static_cast<uint16_t>(random());
    data.activations.push_back(random() % 8 == 0 ? bits & 0x83ff : (bits & 0x87ff) | 0x3800);
  }
  for (int64_t o = 0; o < one.outputs; ++o) {
    auto& row = data.weights.emplace_back();
    for (int64_t i = 0; i < one.inputs; ++i) {
      const uint64_t bits = random();
      row.push_back({.q = static_cast<uint8_t>(bits & 15), .r = static_cast<uint16_t>(bits >> 4 & 0xfff)});
    }
    auto& scales = data.scales.emplace_back();
    for (int64_t group = 0; group * 128 < one.inputs; ++group) {
      scales.push_back(static_cast<uint16_t>(0x3e00 + random() % 0x200));
    }
  }
  return data;
}

/// The nibbles of the blocks one after the other, each filled up to whole words, in the order of
/// rtl/array.sv.
inline std::vector<uint8_t> stored_nibbles(const ArraySizes& sizes, const ArrayCase& one,
                                           const ArrayData& data) {
  std::vector<uint8_t> nibbles;
  const int64_t reach = sizes.tiles * (one.draft ? 3 : 1);
  const auto append = [&](uint32_t value, int count) {
    for (int i = 0; i < count; ++i) nibbles.push_back(value >> 4 * i & 15);
  };
  for (int64_t first = 0; first < one.outputs; first += one.block_outputs) {
    const int64_t last = std::min(first + one.block_outputs, one.outputs);
    for (int64_t begin = 0; begin < one.inputs; begin += one.block_inputs) {
      const int64_t end = std::min(begin + one.block_inputs, one.inputs);
      for (int64_t o = first; o < last; o += reach) {
        for (int64_t i = begin; i < end; i += sizes.pes) {
          for (int64_t output = o; output < std::min(o + reach, last); ++output) {
            for (int64_t input = i; input < std::min(i + sizes.pes, end); ++input) {
              const auto& weight = data.weights[static_cast<size_t>(output)][static_cast<size_t>(input)];
              one.draft ? append(weight.q, 1) : append(static_cast<uint32_t>(weight.q << 12 | weight.r), 4);
            }
          }
        }
      }
      for (int64_t group = begin / 128; one.draft && group * 128 < end; ++group) {
        for (int64_t output = first; output < last; ++output) {
          append(data.scales[static_cast<size_t>(output)][static_cast<size_t>(group)], 4);
        }
      }
      while (nibbles.size() % static_cast<size_t>(2 * sizes.word_bytes) != 0) nibbles.push_back(0);
    }
  }
  return nibbles;
}

/// The results, [row][output], as the model in C++ has them.
inline std::vector<uint32_t> expected_results(const ArrayCase& one, const ArrayData& data) {
  std::vector<uint32_t> results;
  for (int64_t row = 0; row < one.rows; ++row) {
    const auto activations =
        std::span(data.activations)
            .subspan(static_cast<size_t>(row * one.inputs), static_cast<size_t>(one.inputs));
    for (size_t output = 0; output < static_cast<size_t>(one.outputs); ++output) {
      const std::span<const accelerator::StoredWeight> weights = data.weights[output];
      if (!one.draft) {
        results.push_back(accelerator::full_dot(activations, weights));
        continue;
      }
      std::vector<uint32_t> scales;
      for (const uint16_t scale : data.scales[output]) scales.push_back(static_cast<uint32_t>(scale) << 16);
      results.push_back(
          accelerator::draft_dots(activations, {weights, weights, weights}, {scales, scales, scales})[0]);
    }
  }
  return results;
}

/// The cycles that the simulator has for a product on a machine of these sizes.
inline int64_t simulated_cycles(const ArraySizes& sizes, const ArrayCase& one) {
  using namespace accelerator;
  Hardware hardware = load_hardware("speq");
  const int64_t halves = one.single ? 1 : 2;
  hardware.tiles = sizes.tiles;
  hardware.pes = sizes.pes;
  hardware.pipeline_cycles = sizes.pipeline_cycles;
  hardware.weight_buffer = halves * sizes.half_of_weights;
  hardware.output_buffer = halves * sizes.half_of_sums;
  hardware.double_buffered = !one.single;
  hardware.block_outputs = one.block_outputs;
  hardware.block_inputs = one.block_inputs;
  hardware.sfu_lanes = sizes.lanes;
  hardware.sfu_latency_cycles = one.drain_latency;
  const int64_t cycle = hardware.cycle_ps();
  const DramService dram{.burst_bytes = sizes.word_bytes,
                         .pace_ps = one.pace * cycle,
                         .interval_ps = one.interval * cycle,
                         .outage_ps = one.outage * cycle,
                         .latency_ps = one.latency * cycle};
  const Mode mode = one.draft ? Mode::kDraft : Mode::kFull;
  const Product product{.rows = one.rows,
                        .outputs = one.outputs,
                        .inputs = one.inputs,
                        .mode = mode,
                        .weight_bits = hardware.weight_bits(mode),
                        .sfu_passes = one.passes};
  MachineClock clock(hardware, dram);
  for (const Segment& segment : cut(hardware, product)) clock.run(segment);
  return clock.end() / cycle;
}

/// What the array in RTL did with a product.
struct ArrayRun {
  int64_t cycles = 0;
  int64_t stalled = 0;  ///< cycles in which it asked for a word and got none
  std::vector<uint32_t> results;
};

/// Runs a product on the array, with a memory that goes through its refreshes cycle by cycle.
template <typename Array>
ArrayRun run_array(Array& array, const ArraySizes& sizes, const ArrayCase& one, const ArrayData& data) {
  const auto tick = [&] {
    array.clock = 0;
    array.eval();
    array.clock = 1;
    array.eval();
  };
  array.start = 0;
  array.memory_grant = 0;
  array.memory_valid = 0;
  array.reset = 1;
  tick();
  array.reset = 0;
  array.draft = one.draft;
  array.single = one.single;
  array.rows = static_cast<SData>(one.rows);
  array.outputs = static_cast<SData>(one.outputs);
  array.inputs = static_cast<SData>(one.inputs);
  array.block_outputs = static_cast<SData>(one.block_outputs);
  array.block_inputs = static_cast<SData>(one.block_inputs);
  array.drain_passes = static_cast<SData>(one.passes);
  array.drain_latency = static_cast<SData>(one.drain_latency);
  array.write_activation = 1;
  for (size_t i = 0; i < data.activations.size(); ++i) {
    array.activation_address = static_cast<SData>(i);
    array.activation_value = data.activations[i];
    tick();
  }
  array.write_activation = 0;
  array.start = 1;
  tick();
  array.start = 0;

  constexpr int64_t kMostCycles = 200'000;
  const std::vector<uint8_t> nibbles = stored_nibbles(sizes, one, data);
  ArrayRun run;
  run.results.assign(static_cast<size_t>(one.rows * one.outputs), 0x7fffffff);
  std::deque<int64_t> arrivals;
  int64_t progress = 0;
  size_t next = 0;
  int64_t column = 0;
  while (array.busy && run.cycles < kMostCycles) {
    // The memory.
    array.memory_grant = 0;
    if (array.memory_request) {
      if (run.cycles % one.interval >= one.outage) ++progress;
      if (progress == one.pace) {
        progress = 0;
        array.memory_grant = 1;
        arrivals.push_back(run.cycles + one.latency);
      }
      run.stalled += array.memory_grant ? 0 : 1;
    }
    array.memory_valid = !arrivals.empty() && arrivals.front() == run.cycles;
    if (array.memory_valid) {
      arrivals.pop_front();
      uint64_t word = 0;
      for (int64_t i = 0; i < 2 * sizes.word_bytes; ++i, ++next) {
        if (next < nibbles.size()) word |= static_cast<uint64_t>(nibbles[next]) << 4 * i;
      }
      array.memory_word = word;
    }
    // What comes out.
    const int64_t wide = std::min(one.block_outputs, one.outputs - column);
    for (int64_t lane = 0; lane < sizes.lanes; ++lane) {
      if ((array.drained >> lane & 1) == 0) continue;
      const auto index = static_cast<int64_t>(array.drained_index >> 16 * lane & 0xffff);
      run.results[static_cast<size_t>(index / wide * one.outputs + column + index % wide)] =
          array.drained_value[lane];
    }
    if (array.column_drained) column += wide;
    tick();
    ++run.cycles;
  }
  return run;
}

}  // namespace verbatim::test
