#include "formats/number_order.h"

#include <bit>
#include <vector>

namespace verbatim {

namespace {

constexpr size_t kBuckets = 65536;
constexpr uint32_t kSign = 0x80000000u;

/// An integer with the order of the floats.
uint32_t order_key(float number) {
  const auto bits = std::bit_cast<uint32_t>(number);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}
float number_of(uint32_t key) {
  return std::bit_cast<float>((key & kSign) != 0 ? key & ~kSign : ~key);
}

/// A histogram of the upper, or the lower, halves of keys.
struct Histogram {
  std::vector<int64_t> counts = std::vector<int64_t>(kBuckets);
  uint32_t lower_bits = 0;  // those that are set in any number, not in its key
};

/// Calls count(histogram, number) for every number. The sums do not depend on how rows are spread over
/// threads.
template <typename Count>
Histogram histogram_of(std::span<const NumberTable> tables, ThreadTeam& team, Count&& count) {
  const auto members = static_cast<size_t>(team.size());
  std::vector<Histogram> histograms(members);
  for (const NumberTable& table : tables) {
    std::vector<std::vector<float>> rows(members, std::vector<float>(static_cast<size_t>(table.columns)));
    team.run([&](int member, int size) {
      Histogram& histogram = histograms[static_cast<size_t>(member)];
      const std::span<float> row = rows[static_cast<size_t>(member)];
      for (int64_t r = table.rows * member / size; r < table.rows * (member + 1) / size; ++r) {
        table.read(r, row);
        for (const float number : row) count(histogram, number);
      }
    });
  }
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

}  // namespace

float number_with_larger(std::span<const NumberTable> tables, int64_t count, ThreadTeam& team) {
  int64_t all = 0;
  for (const NumberTable& table : tables) all += table.rows * table.columns;
  if (count >= all) return 0.0f;
  const Histogram upper = histogram_of(tables, team, [](Histogram& histogram, float number) {
    ++histogram.counts[order_key(number) >> 16];
    histogram.lower_bits |= std::bit_cast<uint32_t>(number) & 0xffffu;
  });
  const uint32_t upper_half = find_bucket(upper, count);
  if (upper.lower_bits == 0)
    return number_of(upper_half << 16 | (upper_half < 0x8000u ? 0xffffu : 0u));  // BF16
  const Histogram lower = histogram_of(tables, team, [&](Histogram& histogram, float number) {
    const uint32_t key = order_key(number);
    if (key >> 16 == upper_half) ++histogram.counts[key & 0xffffu];
  });
  return number_of(upper_half << 16 | find_bucket(lower, count));
}

}  // namespace verbatim
