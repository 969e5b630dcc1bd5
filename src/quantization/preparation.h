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
#include "quantization/input_statistics.h"

namespace verbatim {

/// A matrix in floats, a row for each of its outputs.
struct DenseMatrix {
  int64_t columns = 0;  ///< outputs
  int64_t k = 0;        ///< inputs
  std::vector<float> values;

  std::span<float> row(int64_t column) {
    return std::span(values).subspan(static_cast<size_t>(column * k), static_cast<size_t>(k));
  }
};

/// What a scheme makes of a model before its weights are rounded. The model that comes out computes the same
/// function, up to rounding, with what the scheme wants done to some inputs (QuantizationScheme).
struct Preparation {
  /// Changes a matrix in place; empty: nothing.
  std::function<void(const MatrixSpec&, DenseMatrix&)> matrix = {};
  /// Changes a vector in place; empty: nothing.
  std::function<void(const VectorSpec&, std::span<float>)> vector = {};
  /// Changes a row of the embedding in place; empty: nothing.
  std::function<void(std::span<float>)> embedding = {};
  /// Atom: the order of a matrix's inputs, the least squares first. By the name of the matrix.
  std::map<std::string, std::vector<int32_t>> orders = {};
};

/// AWQ (Lin et al.; QSpec §4, the weights of `w4a16`): inputs with large activations are multiplied by a
/// factor before rounding, and what produces them is divided by it: a norm, the rows of `up`, and those of
/// the values where every head has its own. The factors are powers of the mean magnitudes; of 20 exponents
/// the one is taken that leaves the least error of a sample of outputs over the samples of the text. Where
/// `cancelled` says so, the rest of the matrices stay as they are.
Preparation prepare_awq(const Checkpoint& checkpoint, const MatrixInputs& calibration,
                        const std::function<void(double)>& progress, const std::function<bool()>& cancelled,
                        ThreadTeam& team);

/// Atom (Zhao et al.; QSpec §4): inputs in the order of their mean squares, so that groups have numbers of
/// like size in them, the last kOutlierInputs in eight bits.
Preparation prepare_atom(const Checkpoint& checkpoint, const MatrixInputs& calibration);

/// QuaRot (Ashkboos et al.; QSpec §4): the residual stream is rotated by a Hadamard matrix with random signs,
/// the values of every head and what `down` reads by a plain one. The gains of the norms, which would not
/// commute with that, go into the matrices behind them.
Preparation prepare_quarot(const Checkpoint& checkpoint);

}  // namespace verbatim
