#pragma once

#include <span>

#include "formats/linear.h"
#include "kernels/blocks.h"

namespace verbatim {

/// The distance in bytes between rows of two-byte activations with k inputs: a little more than a power of
/// two, so that rows do not compete for the same sets of the first-level cache.
int64_t two_byte_stride(int64_t k);

/// The rows that to_two_bytes() makes.
struct TwoByteOptions {
  bool upper_alone = false;    ///< rows have the upper bytes alone, and never words
  bool in_quad_order = false;  ///< every four bytes lie in kQuadOrder, as 4-bit codes of weights do
};

/// Rounds activations to integers of sixteen bits, a step for every 256 inputs. The rows live in `workspace`,
/// two_byte_stride() bytes apart.
std::span<const TwoByteRow> to_two_bytes(Matrix<const float> x, const TwoByteOptions& options,
                                         LinearWorkspace& workspace, ThreadTeam& team);

}  // namespace verbatim
