#include "formats/sparse_split.h"

#include <cmath>

#include "base/error.h"
#include "formats/importance.h"
#include "formats/number_order.h"

namespace verbatim {

namespace {

void check(const SparseFractions& fractions) {
  for (const double fraction :
       {fractions.sensitive, fractions.outliers, fractions.sensitive + fractions.outliers}) {
    if (!(fraction >= 0.0 && fraction <= 1.0))
      fail(ErrorKind::kUsage, "a fraction of {} of the weights cannot be kept in a sparse part", fraction);
  }
}

}  // namespace

SparseThresholds sparse_thresholds(int64_t columns, int64_t k, const MatrixRows& weights,
                                   const MatrixRows& sensitivities, const SparseFractions& fractions,
                                   ThreadTeam& team) {
  check(fractions);
  const auto share = [&](double fraction) {
    return static_cast<int64_t>(fraction * static_cast<double>(columns) * static_cast<double>(k));
  };
  const auto magnitudes = [&](int64_t column, std::span<float> row) {
    weights(column, row);
    for (float& w : row) w = std::fabs(finite_or_zero(w));
  };
  const auto threshold = [&](const MatrixRows& numbers, int64_t count) {
    const NumberTable table{columns, k, numbers};
    return number_with_larger({&table, 1}, count, team);
  };
  SparseThresholds result;
  if (fractions.magnitude) result.magnitude = *fractions.magnitude;
  if (!sensitivities) {
    if (fractions.magnitude) {
      result.sensitivity = result.magnitude;
      return result;
    }
    const int64_t count = share(fractions.sensitive + fractions.outliers);
    if (count > 0) {
      result.magnitude = threshold(magnitudes, count);
      result.sensitivity = result.magnitude;
    }
    return result;
  }
  const int64_t sensitive = share(fractions.sensitive);
  const int64_t outliers = share(fractions.outliers);
  const auto importances = [&](int64_t column, std::span<float> row) {
    sensitivities(column, row);
    for (size_t i = 0; i < row.size(); ++i) row[i] = importance({}, row, i);
  };
  if (sensitive > 0) result.sensitivity = threshold(importances, sensitive);
  if (outliers > 0 && !fractions.magnitude) {
    const auto others = [&](int64_t column, std::span<float> row) {
      std::vector<float> sensitivity(row.size());
      importances(column, sensitivity);
      magnitudes(column, row);
      for (size_t i = 0; i < row.size(); ++i) {
        if (sensitivity[i] > result.sensitivity) row[i] = 0.0f;
      }
    };
    result.magnitude = threshold(others, outliers);
  }
  return result;
}

std::vector<uint8_t> choose_sparse(std::span<const float> weights, std::span<const float> sensitivities,
                                   const SparseThresholds& thresholds) {
  if (!sensitivities.empty() && sensitivities.size() != weights.size())
    fail(ErrorKind::kUsage, "{} weights were given with {} sensitivities", weights.size(),
         sensitivities.size());
  std::vector<uint8_t> is_sparse(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    is_sparse[i] = importance(weights, sensitivities, i) > thresholds.sensitivity ||
                   std::fabs(finite_or_zero(weights[i])) > thresholds.magnitude;
  }
  return is_sparse;
}

}  // namespace verbatim
