#include "prepare/rounded_matrix.h"

#include <algorithm>
#include <cmath>

#include "formats/integer_grid.h"

namespace verbatim {

namespace {

std::span<const float> row_of(const DenseMatrix& matrix, int64_t column) {
  return std::span(matrix.values)
      .subspan(static_cast<size_t>(column * matrix.k), static_cast<size_t>(matrix.k));
}

/// Reads the rows of a matrix, which must live as long.
MatrixRows rows_of(const DenseMatrix& matrix) {
  return [&matrix](int64_t column, std::span<float> row) {
    std::ranges::copy(row_of(matrix, column), row.begin());
  };
}

}  // namespace

int8_t nearest_code(double weight, float scale, int bits) {
  if (scale == 0.0f) return 0;
  const int most = 1 << (bits - 1);
  return static_cast<int8_t>(std::clamp(std::nearbyint(weight / double{scale}), -1.0 * most, most - 1.0));
}

RoundedMatrix choose_scales(const DenseMatrix& weights, int bits, ThreadTeam& team) {
  RoundedMatrix rounded{.columns = weights.columns, .k = weights.k, .codes = {}, .scales = {}};
  const int64_t groups = rounded.groups();
  rounded.codes.resize(weights.values.size());
  rounded.scales.resize(static_cast<size_t>(weights.columns * groups));
  team.split(weights.columns, [&](int64_t begin, int64_t end) {
    for (int64_t column = begin; column < end; ++column) {
      for (int64_t group = 0; group < groups; ++group) {
        const int64_t first = group * kRoundedGroup;
        const auto count = static_cast<size_t>(std::min(kRoundedGroup, weights.k - first));
        rounded.scales[static_cast<size_t>(column * groups + group)] =
            best_grid(row_of(weights, column).subspan(static_cast<size_t>(first), count), bits, false).scale;
      }
    }
  });
  return rounded;
}

RoundedMatrix round_each(const DenseMatrix& weights, int bits, ThreadTeam& team) {
  RoundedMatrix rounded = choose_scales(weights, bits, team);
  team.split(weights.columns, [&](int64_t begin, int64_t end) {
    for (int64_t column = begin; column < end; ++column) {
      const std::span<const float> row = row_of(weights, column);
      for (int64_t i = 0; i < weights.k; ++i) {
        const IntegerGrid grid = symmetric_grid(rounded.scale(column, i), bits);
        rounded.codes[static_cast<size_t>(column * weights.k + i)] =
            static_cast<int8_t>(grid.code(row[static_cast<size_t>(i)]) - grid.zero);
      }
    }
  });
  return rounded;
}

PackResult pack_rounded(const DenseMatrix& weights, const RoundedMatrix& rounded, ThreadTeam& team) {
  PackLinearOptions options;
  options.formats = {Format::kInt4};
  options.codes_of_int4 = true;
  options.codes = [&](int64_t column, std::span<int8_t> codes, std::span<Float16> scales) {
    std::copy_n(rounded.codes.begin() + column * rounded.k, codes.size(), codes.begin());
    for (size_t i = 0; i < scales.size(); ++i) {
      scales[i] = rounded.scale(column, static_cast<int64_t>(i) * kInnerStep);
    }
  };
  return pack_linear(weights.columns, weights.k, rows_of(weights), options, team);
}

PackResult pack_to_nearest(const DenseMatrix& weights, int bits, ThreadTeam& team) {
  if (bits < 4) return pack_rounded(weights, round_each(weights, bits, team), team);
  return pack_linear(weights.columns, weights.k, rows_of(weights), {.formats = {Format::kInt4}}, team);
}

}  // namespace verbatim
