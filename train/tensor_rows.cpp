#include "tensor_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "host_weights.h"

namespace verbatim::train {

std::vector<TensorEntry> sensitivity_entries(const ModelConfig& config, int32_t layer) {
  std::vector<TensorEntry> entries;
  for (const MatrixSpec& spec : specs_of_layer(config, layer)) {
    for (const WeightPart& part : spec.parts) {
      const auto named = [&](const TensorEntry& entry) { return entry.name == part.tensor; };
      if (std::ranges::any_of(entries, named)) continue;
      entries.push_back({part.tensor, DType::kF32, {rows_in_file(part), spec.k}});
    }
  }
  return entries;
}

int64_t weights_of(const std::vector<TensorEntry>& entries) {
  int64_t sum = 0;
  for (const TensorEntry& entry : entries) sum += entry.shape[0] * entry.shape[1];
  return sum;
}

SquareSums::SquareSums(const ModelConfig& config, int32_t layer)
    : prefix_(layer < 0 ? 0 : fmt::formatted_size("layers.{}.", layer)),
      entries_(sensitivity_entries(config, layer)),
      begins_{0} {
  std::map<std::string, size_t> places;
  for (const TensorEntry& entry : entries_) {
    places.emplace(entry.name, begins_.size() - 1);
    begins_.push_back(begins_.back() + entry.shape[0] * entry.shape[1]);
  }
  values_.resize(static_cast<size_t>(begins_.back()));
  for (const MatrixSpec& spec : specs_of_layer(config, layer)) {
    std::vector<int64_t>& rows = rows_[spec.name.substr(prefix_)];
    for (int64_t column = 0; column < spec.columns(); ++column) {
      const TensorRow row = hugging_face_row(config, spec, column);
      rows.push_back(begins_[places.at(row.part->tensor)] + row.row * spec.k);
    }
  }
}

void SquareSums::add(const std::string& name, std::span<const float> gradient) {
  const std::vector<int64_t>& rows = rows_.at(name);
  const size_t k = gradient.size() / rows.size();
  for (size_t r = 0; r < rows.size(); ++r) {
    const std::span<const float> from = gradient.subspan(r * k, k);
    float* const to = values_.data() + rows[r];
    for (size_t i = 0; i < k; ++i) to[i] += from[i] * from[i];
  }
}

void SquareSums::fill_rows(const std::string& matrix, std::span<const float> row) {
  for (const int64_t begin : rows_.at(matrix.substr(prefix_))) {
    std::ranges::copy(row, values_.begin() + begin);
  }
}

void SquareSums::divide(float by) {
  for (float& value : values_) value /= by;
}

std::span<const float> SquareSums::values(size_t entry) const {
  return std::span(values_).subspan(static_cast<size_t>(begins_[entry]),
                                    static_cast<size_t>(begins_[entry + 1] - begins_[entry]));
}

}  // namespace verbatim::train
