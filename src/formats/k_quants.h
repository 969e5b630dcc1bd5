#pragma once

#include <optional>
#include <span>
#include <vector>

#include "formats/packed_matrix.h"

namespace verbatim {

/// The format `k-quants`: the blocks of GGUF's types Q2_K, Q3_K, Q4_K, Q5_K and Q6_K with codes, scales and
/// offsets as they are, so that no weight is rounded. A panel of 16 columns has blocks of one shape, and the
/// panels of a matrix can have several, since files mix types among the matrices that are stored as one here.
///
/// Planes: 0  places  uint64 [panel]: where the panel begins in plane 1, a multiple of 64, plus its
/// BlockShape
///         1  blocks  [panel][block of 256 inputs] BlockLayout
/// A weight is scale · group scale · (code - bias) - offset scale · group offset. With scales of a byte for
/// what takes six bits in a file, a weight takes 3.125 (Q2_K), 3.625, 4.625, 5.625 or 6.625 (Q6_K) bits.
/// Readings: `a16`, activations in sixteen bits, a step for every 256; `a8`, the upper eight of these.
/// Where a matrix has no blocks of its own, pack_matrix() refuses the format; packing floats in it rounds
/// them, in the shapes of Q4_K, Q5_K, Q6_K, Q2_K and Q3_K, panel by panel in turn.
const FormatOperations& k_quants_operations();

/// Some of the columns of a matrix, and the shape of their blocks if they have blocks that the format keeps.
struct ShapedColumns {
  int64_t count;
  std::optional<BlockShape> shape;
};
/// The shape of each panel's blocks in a matrix that consists of `parts` in this order; nothing if a part has
/// no blocks, or if a panel would have blocks of two shapes.
std::vector<BlockShape> panel_shapes(std::span<const ShapedColumns> parts);

/// The shape of a panel's blocks.
BlockShape panel_shape(const PackedMatrix& matrix, int64_t panel);
/// The blocks of a panel.
const uint8_t* panel_blocks(const PackedMatrix& matrix, int64_t panel);
/// The number of blocks in a column of k inputs.
inline int64_t blocks_of(int64_t k) {
  return (k + kBlockInputs - 1) / kBlockInputs;
}
/// The bytes of a panel with blocks of a shape.
inline int64_t panel_bytes(BlockShape shape, int64_t k) {
  return blocks_of(k) * block_layout(shape).bytes();
}

}  // namespace verbatim
