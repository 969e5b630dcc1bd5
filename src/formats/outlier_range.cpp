#include "formats/outlier_range.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "formats/importance.h"
#include "formats/number_order.h"

namespace verbatim {

float OutlierRange::ratio(float magnitude) const {
  // For r ≥ 0 the larger of the two magnitudes is max(−q1, q3) + r·(q3 − q1), whatever the quartiles' signs.
  const double beyond = static_cast<double>(magnitude) - std::max(-lower_quartile, upper_quartile);
  if (!(beyond > 0.0)) return 0.0f;
  const double width = static_cast<double>(upper_quartile) - lower_quartile;
  return static_cast<float>(std::min(beyond / width, double{std::numeric_limits<float>::max()}));
}

float OutlierRange::magnitude(float r) const {
  // Floats that are not negative have the order of their bits.
  uint32_t low = 0;
  uint32_t high = std::bit_cast<uint32_t>(std::numeric_limits<float>::max());
  while (low < high) {
    const uint32_t middle = low + (high - low + 1) / 2;
    if (ratio(std::bit_cast<float>(middle)) <= r) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return std::bit_cast<float>(low);
}

OutlierRange outlier_range(int64_t columns, int64_t k, const MatrixRows& weights, ThreadTeam& team) {
  const NumberTable table{columns, k, [&](int64_t column, std::span<float> row) {
                            weights(column, row);
                            for (float& w : row) w = finite_or_zero(w);
                          }};
  const auto larger = [&](int64_t quarters) {
    return number_with_larger({&table, 1}, columns * k * quarters / 4, team);
  };
  return {larger(3), larger(1)};
}

}  // namespace verbatim
