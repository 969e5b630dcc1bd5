#pragma once

#include "formats/linear.h"

namespace verbatim {

// The kinds of products that linear() is made of. All spread panels over the team and write y whole.

/// Activations in BF16 with room between rows, so that the rows of a block do not compete for the same sets
/// of the first-level cache; zero from the columns of x to the stride.
Matrix<const BFloat16> to_bf16(Matrix<const float> x, LinearWorkspace& workspace, ThreadTeam& team);
inline int64_t bf16_stride(int64_t k) {
  return round_up<int64_t>(k, 256) + kInnerStep;
}
/// Likewise for int8; what follows a row may be anything.
inline int64_t int8_stride(int64_t k) {
  return round_up(k, kInnerStep) + 2 * kInnerStep;
}
/// Activations that meet weights in integers: `int8` `w8a8` in groups of 32, the others in groups of 128, and
/// for `w4a4` in four bits but for the last `wide_inputs`, a multiple of 128.
Int8Rows to_int8(Matrix<const float> x, Reading reading, int64_t wide_inputs, LinearWorkspace& workspace,
                 ThreadTeam& team);

/// `bf16`, `f16` and `f32`.
void multiply_panels(const PackedMatrix& store, Matrix<const float> x, Matrix<float> y,
                     LinearWorkspace& workspace, ThreadTeam& team);

/// Readings that unpack tiles to the very weights: the bits are those of multiply_panels() on these.
void multiply_tiles(const PackedMatrix& store, Reading reading, Matrix<const float> x, Matrix<float> y,
                    LinearWorkspace& workspace, ThreadTeam& team);

/// `int4` and `int8` `w..a16`: products with the integers of each scale group, which BF16 holds exactly,
/// then scaled: y += scale · (product - zero · Σ x), group after group.
void multiply_scaled_late(const PackedMatrix& store, Reading reading, Matrix<const float> x, Matrix<float> y,
                          LinearWorkspace& workspace, ThreadTeam& team);

/// Readings in integers. `wide_inputs`: see LinearWeight.
void multiply_integers(const PackedMatrix& store, Reading reading, int64_t wide_inputs, Matrix<const float> x,
                       Matrix<float> y, LinearWorkspace& workspace, ThreadTeam& team);

/// `squeeze3` and `squeeze4`, dense part and then the sparse one.
void multiply_squeezed(const PackedMatrix& store, Matrix<const float> x, Matrix<float> y,
                       LinearWorkspace& workspace, ThreadTeam& team);

}  // namespace verbatim
