#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "checkpoint/checkpoint.h"
#include "layer_graph.h"
#include "model/weights.h"

namespace verbatim::train {

/// The specs of the matrices of one layer, or with `layer` -1 of those outside the layers.
std::vector<MatrixSpec> specs_of_layer(const ModelConfig& config, int32_t layer);

/// Reads the weights of one layer, or with `layer` -1 the output matrix and the final norm, through the
/// engine's own loader: exactly, or as the block type of the file defines them. A layer gets the angles of
/// `rows` positions. Throws Error(kBadInput),
/// naming the tensor, if one holds NaN or infinity.
template <typename T>
HostWeights<T> read_host_weights(const Checkpoint& checkpoint, int32_t layer, int64_t rows, ThreadTeam& team);

/// Reads the residual stream before the first layer, [tokens][hidden], for tokens at the positions from 0 on.
/// `positions` are the learned vectors of positions (read_positions()).
template <typename T>
std::vector<T> embed(const Checkpoint& checkpoint, const std::vector<float>& positions,
                     std::span<const int32_t> tokens);

/// Reads the learned vectors of positions; none if the model has none.
std::vector<float> read_positions(const Checkpoint& checkpoint);

}  // namespace verbatim::train
