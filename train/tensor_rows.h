#pragma once

#include <string>
#include <vector>

#include "checkpoint/safetensors_writer.h"
#include "model/weights.h"

namespace verbatim::train {

/// The tensors of a file of sensitivities that belong to one layer, or with -1 to the output matrix: names
/// and shapes of the model.
std::vector<TensorEntry> sensitivity_entries(const ModelConfig& config, int32_t layer);
/// The number of weights of such tensors.
int64_t weights_of(const std::vector<TensorEntry>& entries);

/// The sums of squares of one layer, in the order of the tensors of its file.
class SquareSums {
 public:
  SquareSums(const ModelConfig& config, int32_t layer);

  /// Adds the squares of the gradient of a matrix, whose rows are in the engine's order. `name` is that of
  /// the spec without the layer.
  void add(const std::string& name, std::span<const float> gradient);
  /// Gives all rows of a matrix the same numbers. `matrix` is the name of the spec.
  void fill_rows(const std::string& matrix, std::span<const float> row);
  /// Divides all sums by a number.
  void divide(float by);

  const std::vector<TensorEntry>& entries() const { return entries_; }
  std::span<const float> values() const { return values_; }
  /// The sums of one of the tensors.
  std::span<const float> values(size_t entry) const;

 private:
  size_t prefix_;  // the length of the beginning of specs' names that the layer makes
  std::vector<TensorEntry> entries_;
  std::vector<int64_t> begins_;  // of the tensors, and the end of the last
  std::vector<float> values_;
  // By the name of a matrix: where each of its rows begins among the values.
  std::map<std::string, std::vector<int64_t>> rows_;
};

}  // namespace verbatim::train
