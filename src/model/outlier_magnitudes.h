#pragma once

#include <functional>
#include <map>
#include <string>

#include "model/weights.h"

namespace verbatim {

/// Finds the magnitudes above which weights are outliers, by the name of the matrix, with one ratio r for all
/// matrices of the model (OutlierRange): the least for which at most options.sparse.outliers of the model's
/// weights are outliers, not counting the most sensitive weights of each matrix. Without sensitivities they
/// are as many as both shares make. An output matrix without sensitivities has the same rule. A matrix with
/// longer tails than others has more outliers. Reads the model several times, one matrix after the other.
/// Ends early, with nothing, when `cancelled` says so.
std::map<std::string, float> outlier_magnitudes(const Checkpoint& checkpoint, const LoadOptions& options,
                                                const std::function<bool()>& cancelled, ThreadTeam& team);

}  // namespace verbatim
