#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/matrix.h"
#include "base/thread_team.h"
#include "prepare/rounded_matrix.h"

namespace verbatim {

// GPTQ (Frantar et al.): the weights of an output are rounded one after the other, and the weights that are
// not rounded yet make up for the error of each as far as they can, so that the outputs over a text change
// least. Results have the same bits with any team.

/// A symmetric matrix of n × n, of which the part on and above the diagonal counts, or a triangular one, row
/// after row.
struct SquareMatrix {
  int64_t n = 0;
  std::vector<double> values;

  explicit SquareMatrix(int64_t size = 0) : n(size), values(static_cast<size_t>(size * size)) {}
  double* row(int64_t i) { return values.data() + i * n; }
  const double* row(int64_t i) const { return values.data() + i * n; }
};

/// Adds x·xᵀ of every row to a sum over rows. Rows may be longer than the sum, whose size counts.
void add_outer_products(SquareMatrix& sum, Matrix<const float> x, ThreadTeam& team);

/// The order in which GPTQ rounds the inputs: those with the largest mean squares first ("activation order"),
/// of equal ones the first.
std::vector<int32_t> activation_order(const SquareMatrix& hessian);

/// Finds the upper triangular U with UᵀU = H⁻¹, where H is the sum of x·xᵀ with inputs in the given order and
/// with a hundredth of the mean of its diagonal added to the diagonal, as the paper has it. H = R·Rᵀ is
/// decomposed by Cholesky's method from its end, and U is the inverse of R. An H of zeros counts as the unit
/// matrix.
SquareMatrix inverse_factor(const SquareMatrix& hessian, std::span<const int32_t> order, ThreadTeam& team);

/// Rounds a matrix by GPTQ to 3 or 4 bits. `hessian` is the sum of x·xᵀ over the inputs of a text, all of
/// which are finite. The scales are those of round_each(), of groups of neighbouring inputs, found before any
/// weight is rounded, so that the order of the inputs needs no place in a file.
RoundedMatrix round_by_gptq(const DenseMatrix& weights, const SquareMatrix& hessian, int bits,
                            ThreadTeam& team);

}  // namespace verbatim
