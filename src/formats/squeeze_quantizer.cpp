#include "formats/squeeze_quantizer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "formats/importance.h"
#include "formats/weighted_kmeans.h"

namespace verbatim {

namespace {

constexpr double kLeastShare = 1e-6;  // of the mean sensitivity
constexpr BFloat16 kLargest = {0x7f7f};

/// The distinct weights of the dense part, ascending, and the importance of each.
struct Distribution {
  std::vector<double> values;
  std::vector<double> importances;
};

struct Sample {
  float value;
  float importance;
};

/// An integer with the order of the floats.
uint32_t sort_key(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

/// Sorts by radix, byte after byte, which is several times faster than comparing; the lower half of a BF16
/// weight is zero and needs no round.
void sort_by_value(std::vector<Sample>& samples) {
  std::array<std::array<uint32_t, 256>, 4> counts{};
  for (const Sample& sample : samples) {
    for (size_t byte = 0; byte < 4; ++byte) ++counts[byte][sort_key(sample.value) >> 8 * byte & 255];
  }
  std::vector<Sample> sorted(samples.size());
  for (size_t byte = 0; byte < 4; ++byte) {
    std::array<uint32_t, 256>& places = counts[byte];
    if (std::count(places.begin(), places.end(), 0u) == 255) continue;
    std::exclusive_scan(places.begin(), places.end(), places.begin(), 0u);
    for (const Sample& sample : samples) sorted[places[sort_key(sample.value) >> 8 * byte & 255]++] = sample;
    samples.swap(sorted);
  }
}

Distribution distribution_of(std::span<const float> weights, std::span<const float> sensitivities,
                             std::span<const uint8_t> is_sparse) {
  std::vector<Sample> samples;
  samples.reserve(weights.size());
  double total = 0.0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!is_sparse.empty() && is_sparse[i] != 0) continue;
    samples.push_back({finite_or_zero(weights[i]), importance(weights, sensitivities, i)});
    total += samples.back().importance;
  }
  sort_by_value(samples);
  const double floor = total > 0.0 ? kLeastShare * total / static_cast<double>(samples.size()) : 1.0;
  Distribution result;
  for (const Sample& sample : samples) {
    const double counts = std::max<double>(sample.importance, floor);
    if (!result.values.empty() && result.values.back() == sample.value) {
      result.importances.back() += counts;
    } else {
      result.values.push_back(sample.value);
      result.importances.push_back(counts);
    }
  }
  return result;
}

BFloat16 table_entry(double centroid) {
  const auto value = static_cast<float>(centroid);
  // Instruction sets differ in whether they flush subnormal numbers.
  if (std::fabs(to_float(to_bfloat16(value))) < std::numeric_limits<float>::min()) return {0};
  return to_bfloat16(std::clamp(value, -to_float(kLargest), to_float(kLargest)));
}

/// The largest float that is not above x: a float is above one exactly when it is above the other.
float float_at_most(double x) {
  const auto nearest = static_cast<float>(x);
  return nearest > x ? std::nextafter(nearest, -std::numeric_limits<float>::infinity()) : nearest;
}

}  // namespace

SqueezedColumn quantize_squeezed(std::span<const float> weights, std::span<const float> sensitivities,
                                 std::span<const uint8_t> is_sparse, int levels) {
  if (levels != 4 && levels != 8 && levels != 16)
    fail(ErrorKind::kUsage, "a table of {} values was asked for; 4, 8 and 16 exist", levels);
  for (const size_t size : {sensitivities.size(), is_sparse.size()}) {
    if (size != 0 && size != weights.size())
      fail(ErrorKind::kUsage, "{} weights were given with {} sensitivities or marks", weights.size(), size);
  }
  SqueezedColumn column;
  column.codes.resize(weights.size());
  const Distribution distribution = distribution_of(weights, sensitivities, is_sparse);
  const std::vector<double> centroids =
      weighted_kmeans(distribution.values, distribution.importances, levels);
  if (!centroids.empty()) {
    for (size_t i = 0; i < static_cast<size_t>(levels); ++i) {
      column.table[i] = table_entry(centroids[std::min(i, centroids.size() - 1)]);
    }
  }

  const auto entry = [&](size_t i) { return static_cast<double>(to_float(column.table[i])); };
  std::array<float, 15> borders;
  borders.fill(std::numeric_limits<float>::infinity());
  for (size_t i = 0; i + 1 < static_cast<size_t>(levels); ++i) {
    borders[i] = float_at_most((entry(i) + entry(i + 1)) / 2);
    if (std::fabs(entry(i + 1)) < std::fabs(entry(column.zero_code)))
      column.zero_code = static_cast<uint8_t>(i + 1);
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    const float weight = finite_or_zero(weights[i]);
    int code = 0;
    for (const float border : borders) code += weight > border;
    column.codes[i] = !is_sparse.empty() && is_sparse[i] != 0 ? column.zero_code : static_cast<uint8_t>(code);
  }
  return column;
}

float sparse_residual(const SqueezedColumn& column, float weight) {
  return finite_or_zero(weight) - column.value(column.zero_code);
}

}  // namespace verbatim
