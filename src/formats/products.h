#pragma once

#include "formats/linear.h"

namespace verbatim {

// The products that linear() is made of, one per family of readings. Each spreads the panels over the team
// and overwrites all of y.

/// The number of panels that a thread takes at a time for a product of `rows` rows in a reading of the store.
int64_t panels_per_block(const PackedMatrix& store, Reading reading, int64_t rows);

/// Rounds activations to BF16. Rows lie bf16_stride() elements apart, so that the rows of a block do not
/// compete for the same sets of the first-level cache; the elements after a row, up to the stride, are zero.
Matrix<const BFloat16> to_bf16(Matrix<const float> x, LinearWorkspace& workspace, ThreadTeam& team);
/// The distance between rows of `k` activations in BF16, in elements.
inline int64_t bf16_stride(int64_t k) {
  return round_up<int64_t>(k, 256) + kInnerStep;
}
/// The distance between rows of `k` activations in int8, in elements. The elements after a row, up to the
/// stride, are undefined.
inline int64_t int8_stride(int64_t k) {
  return round_up(k, kInnerStep) + 2 * kInnerStep;
}
/// Rounds activations to integers, for readings that multiply integers. Groups of inputs share a scale: 32
/// inputs for the reading `int8-w8a8`, 128 for all others. For readings with four-bit activations (`w4a4`)
/// the codes are -7 .. 7, except those of the last `wide_inputs` inputs (a multiple of 128), which have eight
/// bits.
Int8Rows to_int8(Matrix<const float> x, Reading reading, int64_t wide_inputs, LinearWorkspace& workspace,
                 ThreadTeam& team);

/// Multiplies by a store in the format `bf16`, `f16` or `f32`: y = x · weights.
void multiply_panels(const PackedMatrix& store, Matrix<const float> x, Matrix<float> y,
                     LinearWorkspace& workspace, ThreadTeam& team);

/// Multiplies in a reading that unpacks tiles of codes to BF16 or F16 weights. The result has the bits that
/// multiply_panels() would give for the unpacked weights.
void multiply_tiles(const PackedMatrix& store, Reading reading, Matrix<const float> x, Matrix<float> y,
                    LinearWorkspace& workspace, ThreadTeam& team);

/// Multiplies in the readings `int4-w4a16`, `int4-asymmetric-w4a16` and `int8-w8a16`, and `q8_0` in BF16. The
/// integers of a scale group, which BF16 holds exactly, are multiplied first, and the product is scaled after
/// it: y += scale · (product - zero · Σ x), group after group.
void multiply_scaled_late(const PackedMatrix& store, Reading reading, Matrix<const float> x, Matrix<float> y,
                          LinearWorkspace& workspace, ThreadTeam& team);

/// Multiplies in the reading `q8_0`: in integers within tiles of 32 inputs, with activations of sixteen bits,
/// where the kernels have a product for it, and else as multiply_scaled_late().
void multiply_q8_0(const PackedMatrix& store, Matrix<const float> x, Matrix<float> y,
                   LinearWorkspace& workspace, ThreadTeam& team);

/// Multiplies in a reading whose activations and weights are integers. `wide_inputs` is that of to_int8().
void multiply_integers(const PackedMatrix& store, Reading reading, int64_t wide_inputs, Matrix<const float> x,
                       Matrix<float> y, LinearWorkspace& workspace, ThreadTeam& team);

/// Multiplies in the reading `bsfp-draft-a16`: sums in F32, k ascending. Activations beyond the range of F16
/// become its largest numbers.
void multiply_bsfp_levels(const PackedMatrix& store, Matrix<const float> x, Matrix<float> y,
                          LinearWorkspace& workspace, ThreadTeam& team);

/// Multiplies by a store in the format `k-quants`, in integers within blocks of 256 inputs.
void multiply_k_quants(const PackedMatrix& store, Reading reading, Matrix<const float> x, Matrix<float> y,
                       LinearWorkspace& workspace, ThreadTeam& team);

/// Multiplies by a store in the format `squeeze3` or `squeeze4`: first its dense part, then its sparse part.
void multiply_squeezed(const PackedMatrix& store, Matrix<const float> x, Matrix<float> y,
                       LinearWorkspace& workspace, ThreadTeam& team);

}  // namespace verbatim
