#pragma once

#include <functional>
#include <span>
#include <vector>

#include "model/weights.h"

namespace verbatim {

/// Some weights of a model, 256 at places that depend on its config alone. The same model in another file,
/// also in a quantized one, has nearly the same; another model of the same shape does not.
std::vector<float> weight_sketch(const Checkpoint& checkpoint);

/// Fills `row`, of as many floats as the matrix has inputs, with the weights of one output column.
using ReadColumn = std::function<void(const MatrixSpec& matrix, int64_t column, std::span<float> row)>;

/// The sketch of a model whose weights are read one column at a time, as those of a packed file are.
std::vector<float> weight_sketch(const ModelConfig& config, const ReadColumn& read);

/// How alike two sketches are: the cosine of the angle between them. 0 for sketches of different length.
double likeness(std::span<const float> a, std::span<const float> b);

/// The likeness from which on two sketches count as those of one model.
inline constexpr double kSameModel = 0.9;

}  // namespace verbatim
