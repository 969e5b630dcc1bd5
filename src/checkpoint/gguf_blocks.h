#pragma once

#include <cstddef>
#include <cstdint>

#include "checkpoint/checkpoint.h"
#include "formats/packed_matrix.h"

namespace verbatim {

/// A type of GGUF files whose elements are stored in blocks, each with scales of its own.
struct BlockType {
  size_t elements = 0;  ///< the number of elements in a block
  size_t bytes = 0;     ///< the number of bytes in a block
  /// Writes the elements of a block as floats, with the arithmetic that defines the type: each product and
  /// each difference is rounded once, in the order of the definition. The block may lie at any address and
  /// hold anything.
  void (*dequantize)(const uint8_t* block, float* out) = nullptr;
  /// Writes codes whose products with one F16 number, the first two bytes of the block, are the elements.
  /// Null for types that need more than eight bits, an offset or more scales.
  void (*codes)(const uint8_t* block, int8_t* out) = nullptr;
  /// Takes a block of the shape `shape` apart, into what the format `k-quants` stores. Null for other types.
  void (*take_apart)(const uint8_t* block, KQuantBlock* out) = nullptr;
  BlockShape shape = kBlockShapes;
};

/// The blocks of a type, or null for types whose elements are stored one by one.
const BlockType* block_type(DType dtype);

}  // namespace verbatim
