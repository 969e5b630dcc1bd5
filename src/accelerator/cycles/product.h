#pragma once

#include <vector>

#include "accelerator/cycles/block.h"
#include "accelerator/parameters/hardware.h"

namespace verbatim::accelerator {

/// The most blocks of one product's inputs, or of the attention of one layer, that are written out.
inline constexpr int64_t kMostBlocks = int64_t{1} << 20;

/// A product of rows with a matrix of `outputs` by `inputs`.
struct Product {
  int64_t rows = 1;
  int64_t outputs = 0;
  int64_t inputs = 0;
  Mode mode = Mode::kFull;
  double weight_bits = 16;      ///< of one weight in memory
  bool keys_or_values = false;  ///< the matrix is part of the cache: no exceptions
  int64_t sfu_passes = 0;       ///< of each result through the SFU
};

/// The cycles in which the array multiplies rows with a block of a matrix.
int64_t array_cycles(const Hardware& hardware, Mode mode, int64_t rows, int64_t outputs, int64_t inputs);

/// The most products that the array can do in a cycle.
int64_t peak_macs(const Hardware& hardware, Mode mode);

/// Cuts a product into blocks that fit the buffers, in the order in which they are loaded: all inputs of some
/// outputs, then of the next ones. The first block waits for all that the SFU was given before. Throws
/// Error(kBadInput) when a block that the machine's file names, or any block, does not fit.
std::vector<Segment> cut(const Hardware& hardware, const Product& product);

}  // namespace verbatim::accelerator
