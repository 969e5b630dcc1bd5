#include "model/outlier_magnitudes.h"

#include <cmath>
#include <vector>

#include "formats/importance.h"
#include "formats/number_order.h"
#include "formats/outlier_range.h"

namespace verbatim {

namespace {

/// A matrix of the model: its weights, of the checkpoint and as they are packed, their sensitivities, and
/// what makes an outlier.
struct RangedMatrix {
  MatrixRows own;            // the weights of the checkpoint
  MatrixRows weights;        // refers to them
  MatrixRows sensitivities;  // or empty
  OutlierRange range;
  float high_sensitivity = INFINITY;  // weights that are more sensitive are kept apart for that
};

/// Fills in the ratios of a column's weights, 0 for those that are kept apart as the most sensitive.
void read_ratios(const RangedMatrix& matrix, int64_t column, std::span<float> row) {
  matrix.weights(column, row);
  for (float& w : row) w = matrix.range.ratio(std::fabs(finite_or_zero(w)));
  if (!matrix.sensitivities) return;
  std::vector<float> sensitivities(row.size());
  matrix.sensitivities(column, sensitivities);
  for (size_t i = 0; i < row.size(); ++i) {
    if (importance({}, sensitivities, i) > matrix.high_sensitivity) row[i] = 0.0f;
  }
}

}  // namespace

std::map<std::string, float> outlier_magnitudes(const Checkpoint& checkpoint, const LoadOptions& options,
                                                const std::function<bool()>& cancelled, ThreadTeam& team) {
  const std::vector<MatrixSpec> specs = matrix_specs(checkpoint.config);
  std::vector<RangedMatrix> matrices;
  matrices.reserve(specs.size());
  std::vector<NumberTable> ratios;
  double outliers = 0.0;
  for (const MatrixSpec& spec : specs) {
    if (cancelled && cancelled()) return {};
    RangedMatrix& matrix = matrices.emplace_back();
    if (options.sensitivities != nullptr) {
      matrix.sensitivities = sensitivity_rows(checkpoint.config, *options.sensitivities, spec);
    }
    matrix.own = matrix_rows(checkpoint, spec);
    matrix.weights = options.transform
                         ? options.transform(spec.columns(), spec.k, matrix.own, matrix.sensitivities, team)
                         : matrix.own;
    double share = options.sparse.outliers;
    if (matrix.sensitivities) {
      matrix.high_sensitivity =
          sparse_thresholds(spec.columns(), spec.k, matrix.weights, matrix.sensitivities,
                            {.sensitive = options.sparse.sensitive, .outliers = 0.0}, team)
              .sensitivity;
    } else {
      share += options.sparse.sensitive;
    }
    outliers += share * static_cast<double>(spec.columns()) * static_cast<double>(spec.k);
    matrix.range = outlier_range(spec.columns(), spec.k, matrix.weights, team);
    ratios.push_back({spec.columns(), spec.k,
                      [&matrix](int64_t column, std::span<float> row) { read_ratios(matrix, column, row); }});
    for (const auto& file : checkpoint.files) file->release();
  }
  const float ratio = number_with_larger(ratios, static_cast<int64_t>(outliers), team);
  std::map<std::string, float> magnitudes;
  for (size_t i = 0; i < specs.size(); ++i) {
    magnitudes[specs[i].name] = outliers < 1.0 ? INFINITY : matrices[i].range.magnitude(ratio);
  }
  return magnitudes;
}

}  // namespace verbatim
