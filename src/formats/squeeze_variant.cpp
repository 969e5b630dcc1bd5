#include "formats/squeeze_variant.h"

#include <algorithm>
#include <vector>

#include "formats/importance.h"
#include "formats/round_to_nearest.h"
#include "formats/squeeze_quantizer.h"

namespace verbatim {

namespace {

/// Gives the weights of a group the values of their table's entries; those kept apart get their own again.
void squeeze_group(std::span<float> weights, std::span<const float> sensitivities,
                   std::span<const uint8_t> sparse, int bits) {
  const SqueezedColumn squeezed = quantize_squeezed(weights, sensitivities, sparse, 1 << bits);
  for (size_t i = 0; i < weights.size(); ++i) {
    const float entry = squeezed.value(squeezed.codes[i]);
    weights[i] =
        sparse[i] != 0 ? entry + to_float(to_bfloat16(sparse_residual(squeezed, weights[i]))) : entry;
  }
}

/// The same with values at equal distances over the range of the weights that are not kept apart.
void round_group(std::span<float> weights, std::span<const uint8_t> sparse, int bits) {
  std::vector<float> dense(weights.begin(), weights.end());
  for (size_t i = 0; i < dense.size(); ++i) {
    if (sparse[i] != 0) dense[i] = 0.0f;
  }
  round_to_nearest(dense, bits, dense);
  for (size_t i = 0; i < dense.size(); ++i) {
    weights[i] = sparse[i] != 0 ? to_float(to_bfloat16(finite_or_zero(weights[i]))) : dense[i];
  }
}

}  // namespace

MatrixRows squeezed_rows(int64_t columns, int64_t k, const MatrixRows& weights,
                         const MatrixRows& sensitivities, const SqueezeVariant& variant, ThreadTeam& team) {
  const SparseThresholds thresholds =
      sparse_thresholds(columns, k, weights, sensitivities, variant.sparse, team);
  return [weights, sensitivities, variant, thresholds](int64_t column, std::span<float> row) {
    weights(column, row);
    std::vector<float> sensitivity;
    if (sensitivities) {
      sensitivity.resize(row.size());
      sensitivities(column, sensitivity);
    }
    const std::vector<uint8_t> sparse = choose_sparse(row, sensitivity, thresholds);
    // Without sensitivities the tables treat all weights alike.
    if (!sensitivities) sensitivity.assign(row.size(), 1.0f);
    const size_t group = variant.group > 0 ? static_cast<size_t>(variant.group) : row.size();
    for (size_t begin = 0; begin < row.size(); begin += group) {
      const size_t count = std::min(group, row.size() - begin);
      const std::span<const uint8_t> apart = std::span(sparse).subspan(begin, count);
      if (variant.uniform) {
        round_group(row.subspan(begin, count), apart, variant.bits);
      } else {
        squeeze_group(row.subspan(begin, count), std::span(sensitivity).subspan(begin, count), apart,
                      variant.bits);
      }
    }
  };
}

}  // namespace verbatim
