#pragma once

#include <cstdint>

#include "formats/sparse_split.h"

namespace verbatim {

/// The range outside of which weights of a matrix are outliers, as the authors of SqueezeLLM choose it: with
/// the quartiles q1 and q3 of the matrix's weights, weights whose magnitude is above
/// max(|q1 − r·(q3 − q1)|, |q3 + r·(q3 − q1)|), where r is not negative and may be the same for a whole
/// model.
struct OutlierRange {
  float lower_quartile = 0;
  float upper_quartile = 0;

  /// The largest r for which a weight of this magnitude is an outlier, or nearly so; 0 if it never is one.
  /// It grows with the magnitude.
  float ratio(float magnitude) const;
  /// The largest magnitude whose ratio is not above r.
  float magnitude(float r) const;
};

/// Finds the quartiles of a matrix of columns × k: of its weights three quarters, or one quarter, are not
/// smaller. NaN and infinity count as zero.
OutlierRange outlier_range(int64_t columns, int64_t k, const MatrixRows& weights, ThreadTeam& team);

}  // namespace verbatim
