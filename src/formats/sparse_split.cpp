#include "formats/sparse_split.h"

#include <bit>
#include <cmath>

#include "base/error.h"
#include "formats/importance.h"

namespace verbatim {

namespace {

constexpr size_t kBuckets = 65536;

/// A histogram of the upper, or the lower, halves of the bits of floats. Floats that are not negative have
/// the order of their bits.
struct Histogram {
  std::vector<int64_t> counts = std::vector<int64_t>(kBuckets);
  uint32_t lower_bits = 0;  // those that are set in any number
};

/// Fills a row with numbers that are not negative.
using NumberRows = std::function<void(int64_t column, std::span<float> row)>;

struct Numbers {
  int64_t columns;
  int64_t k;
  const NumberRows& rows;
  ThreadTeam& team;
};

/// Calls count(histogram, bits) for every number. The sums do not depend on how the numbers are spread over
/// threads.
template <typename Count>
Histogram histogram_of(const Numbers& numbers, Count&& count) {
  const auto members = static_cast<size_t>(numbers.team.size());
  std::vector<Histogram> histograms(members);
  std::vector<std::vector<float>> rows(members, std::vector<float>(static_cast<size_t>(numbers.k)));
  numbers.team.run([&](int member, int size) {
    Histogram& histogram = histograms[static_cast<size_t>(member)];
    const std::span<float> row = rows[static_cast<size_t>(member)];
    for (int64_t c = numbers.columns * member / size; c < numbers.columns * (member + 1) / size; ++c) {
      numbers.rows(c, row);
      for (const float number : row) count(histogram, std::bit_cast<uint32_t>(number));
    }
  });
  for (size_t member = 1; member < members; ++member) {
    for (size_t i = 0; i < kBuckets; ++i) histograms[0].counts[i] += histograms[member].counts[i];
    histograms[0].lower_bits |= histograms[member].lower_bits;
  }
  return std::move(histograms[0]);
}

/// The highest bucket that, together with all buckets above it, holds more than `count` numbers, or 0.
/// Subtracts the numbers in the buckets above it from `count`.
uint32_t find_bucket(const Histogram& histogram, int64_t& count) {
  size_t bucket = kBuckets - 1;
  while (bucket > 0 && histogram.counts[bucket] <= count) count -= histogram.counts[bucket--];
  return static_cast<uint32_t>(bucket);
}

/// The smallest number for which at most `count` numbers are larger.
float threshold(const Numbers& numbers, int64_t count) {
  const Histogram upper = histogram_of(numbers, [](Histogram& histogram, uint32_t bits) {
    ++histogram.counts[bits >> 16];
    histogram.lower_bits |= bits & 0xffffu;
  });
  const uint32_t upper_half = find_bucket(upper, count);
  uint32_t lower_half = 0;
  if (upper.lower_bits != 0) {  // not for BF16
    const Histogram lower = histogram_of(numbers, [&](Histogram& histogram, uint32_t bits) {
      if (bits >> 16 == upper_half) ++histogram.counts[bits & 0xffffu];
    });
    lower_half = find_bucket(lower, count);
  }
  return std::bit_cast<float>(upper_half << 16 | lower_half);
}

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
  SparseThresholds result;
  if (!sensitivities) {
    const int64_t count = share(fractions.sensitive + fractions.outliers);
    if (count > 0) {
      result.magnitude = threshold({columns, k, magnitudes, team}, count);
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
  if (sensitive > 0) result.sensitivity = threshold({columns, k, importances, team}, sensitive);
  if (outliers > 0) {
    const auto others = [&](int64_t column, std::span<float> row) {
      std::vector<float> sensitivity(row.size());
      importances(column, sensitivity);
      magnitudes(column, row);
      for (size_t i = 0; i < row.size(); ++i) {
        if (sensitivity[i] > result.sensitivity) row[i] = 0.0f;
      }
    };
    result.magnitude = threshold({columns, k, others, team}, outliers);
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
