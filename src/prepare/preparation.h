#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "checkpoint/checkpoint.h"
#include "model/weights.h"
#include "prepare/input_statistics.h"

namespace verbatim {

/// A matrix in floats, with a row for each output.
struct DenseMatrix {
  int64_t columns = 0;  ///< the number of outputs
  int64_t k = 0;        ///< the number of inputs
  std::vector<float> values;

  std::span<float> row(int64_t column) {
    return std::span(values).subspan(static_cast<size_t>(column * k), static_cast<size_t>(k));
  }
};

/// The changes that a scheme makes to a model before its weights are rounded. Together with the scheme's
/// changes to the inputs of matrices (QuantizationScheme) the changed model computes the same function, up to
/// rounding.
struct Preparation {
  /// Changes a matrix in place; empty: no matrix is changed.
  std::function<void(const MatrixSpec&, DenseMatrix&)> matrix = {};
  /// Changes a vector in place; empty: no vector is changed.
  std::function<void(const VectorSpec&, std::span<float>)> vector = {};
  /// Changes a row of the embedding in place; empty: the embedding is not changed.
  std::function<void(std::span<float>)> embedding = {};
  /// For Atom, the order of each matrix's inputs, by ascending mean square. The key is the name of the
  /// matrix.
  std::map<std::string, std::vector<int32_t>> orders = {};
};

/// Prepares for AWQ (Lin et al.; QSpec §4, the weights of `w4a16`). The weights of inputs with large
/// activations are multiplied by a factor before rounding, and the weights that produce these inputs are
/// divided by it: a norm, the rows of `up`, or the rows of the values if every query head has its own. The
/// factors are powers of the mean magnitudes of the inputs; of 20 exponents the one with the smallest error
/// of some outputs over the samples of the text is taken, when their weights have `bits` bits, 3 or 4. When
/// `cancelled` returns true, the remaining matrices stay unchanged.
Preparation prepare_awq(const Checkpoint& checkpoint, const MatrixInputs& calibration, int bits,
                        const std::function<void(double)>& progress, const std::function<bool()>& cancelled,
                        ThreadTeam& team);

/// Prepares for Atom (Zhao et al.; QSpec §4). Inputs are put in the order of their mean squares, so that the
/// inputs of a group are of similar size, and the last kOutlierInputs are kept in eight bits.
Preparation prepare_atom(const Checkpoint& checkpoint, const MatrixInputs& calibration);

/// Prepares for QuaRot (Ashkboos et al.; QSpec §4). The residual stream is rotated by a Hadamard matrix with
/// random signs, the values of every head and the input of `down` by one without. The gains of the norms,
/// which do not commute with a rotation, are multiplied into the matrices behind the norms.
Preparation prepare_quarot(const Checkpoint& checkpoint);

}  // namespace verbatim
