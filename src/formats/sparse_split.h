#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/thread_team.h"

namespace verbatim {

// Which weights the dense-and-sparse decomposition keeps out of the tables (SqueezeLLM; thesis §3.3, "Dense-
// and-Sparse Quantization"): the most sensitive ones, and outliers, which would stretch the tables.
// Thresholds are for a whole matrix, so that columns that have many of them may keep many (thesis B.1).

/// Of all weights of a matrix, as in the thesis' evaluation (§3.4). Both 0: the dense-only variant.
struct SparseFractions {
  double sensitive = 0.0005;  ///< the most sensitive
  double outliers = 0.004;    ///< of the others, the largest in magnitude
};

/// Weights above either are kept in the sparse part.
struct SparseThresholds {
  float sensitivity = std::numeric_limits<float>::infinity();
  float magnitude = std::numeric_limits<float>::infinity();
};

/// Fills `row` (k floats) with what belongs to one output column. Called from several threads at once.
using MatrixRows = std::function<void(int64_t column, std::span<float> row)>;

/// The thresholds that select the fractions of a matrix of columns × k: exactly, but that weights equal to a
/// threshold stay in the dense part, so that there can be fewer, never more, and zeros are never outliers.
/// Without sensitivities (an empty function) magnitudes stand in for them, and both fractions together are
/// the largest weights. Passes over the matrix several times in memory that does not grow with it. NaN and
/// infinity count as zero.
SparseThresholds sparse_thresholds(int64_t columns, int64_t k, const MatrixRows& weights,
                                   const MatrixRows& sensitivities, const SparseFractions& fractions,
                                   ThreadTeam& team);

/// For the weights of one column: 1 where the sparse part keeps the weight, else 0. `sensitivities` are as
/// many as weights, or none where the thresholds were made without.
std::vector<uint8_t> choose_sparse(std::span<const float> weights, std::span<const float> sensitivities,
                                   const SparseThresholds& thresholds);

}  // namespace verbatim
