#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_team.h"

namespace verbatim {

// The choice of the weights that the dense-and-sparse decomposition stores outside the tables (SqueezeLLM;
// thesis §3.3, "Dense-and-Sparse Quantization"): the most sensitive ones, and outliers, which would stretch
// the tables. Thresholds hold for a whole matrix, so that a column with many such weights may keep many
// (thesis B.1).

/// The share of a matrix's weights that belongs to the sparse part; the defaults are those of the thesis'
/// evaluation (§3.4). With both 0 there is no sparse part (the dense-only variant).
struct SparseFractions {
  double sensitive = 0.0005;  ///< the share of the most sensitive weights
  double outliers = 0.004;    ///< the share of the largest of the other weights
  /// In place of the share of the largest: weights whose magnitude is above this one are kept apart.
  std::optional<float> magnitude = {};
};

/// The thresholds of the sparse part: a weight belongs to it if it is above either.
struct SparseThresholds {
  float sensitivity = std::numeric_limits<float>::infinity();
  float magnitude = std::numeric_limits<float>::infinity();
};

/// Fills `row` (k floats) with the weights, or the sensitivities, of one output column. Called from several
/// threads at once.
using MatrixRows = std::function<void(int64_t column, std::span<float> row)>;

/// Finds the thresholds that select the wanted fractions of a matrix of columns × k. Weights equal to a
/// threshold stay in the dense part, so the sparse part may be a little smaller than wanted, but never
/// larger; and zeros are never outliers. If `sensitivities` is empty, magnitudes take their place, and the
/// sparse part is the largest weights. Reads the matrix several times, in memory that does not grow with it.
/// NaN and infinity count as zero.
SparseThresholds sparse_thresholds(int64_t columns, int64_t k, const MatrixRows& weights,
                                   const MatrixRows& sensitivities, const SparseFractions& fractions,
                                   ThreadTeam& team);

/// Applies the thresholds to the weights of one column: the result is 1 for weights of the sparse part, else
/// 0. There are as many sensitivities as weights, or none if the thresholds were made without them.
std::vector<uint8_t> choose_sparse(std::span<const float> weights, std::span<const float> sensitivities,
                                   const SparseThresholds& thresholds);

}  // namespace verbatim
