#include "model/weight_sketch.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "formats/importance.h"

namespace verbatim {

std::vector<float> weight_sketch(const Checkpoint& checkpoint) {
  constexpr uint32_t kWeights = 256;
  const std::vector<MatrixSpec> specs = matrix_specs(checkpoint.config);
  std::vector<float> sketch;
  std::vector<float> row;
  for (uint32_t i = 0; i < kWeights; ++i) {
    const auto words = philox({i, 0, 0, 0}, {0, 0});
    const MatrixSpec& spec = specs[words[0] % specs.size()];
    row.resize(static_cast<size_t>(spec.k));
    matrix_rows(checkpoint, spec)(words[1] % spec.columns(), row);
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
