#include "model/weight_sketch.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "formats/importance.h"

namespace verbatim {

std::vector<float> weight_sketch(const Checkpoint& checkpoint) {
  return weight_sketch(checkpoint.config,
                       [&](const MatrixSpec& matrix, int64_t column, std::span<float> row) {
                         matrix_rows(checkpoint, matrix)(column, row);
                       });
}

std::vector<float> weight_sketch(const ModelConfig& config, const ReadColumn& read) {
  constexpr uint32_t kWeights = 256;
  const std::vector<MatrixSpec> specs = matrix_specs(config);
  std::vector<float> sketch;
  std::vector<float> row;
  for (uint32_t i = 0; i < kWeights; ++i) {
    const auto words = philox({i, 0, 0, 0}, {0, 0});
    const MatrixSpec& spec = specs[words[0] % specs.size()];
    row.resize(static_cast<size_t>(spec.k));
    read(spec, words[1] % spec.columns(), row);
    sketch.push_back(finite_or_zero(row[words[2] % row.size()]));
  }
  return sketch;
}

double likeness(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return 0.0;
  double product = 0.0;
  double squares_a = 0.0;
  double squares_b = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += static_cast<double>(a[i]) * b[i];
    squares_a += static_cast<double>(a[i]) * a[i];
    squares_b += static_cast<double>(b[i]) * b[i];
  }
  return squares_a > 0.0 && squares_b > 0.0 ? product / std::sqrt(squares_a * squares_b) : 0.0;
}

}  // namespace verbatim
