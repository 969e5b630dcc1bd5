#include "bench/filled_cache.h"

#include <algorithm>
#include <random>
#include <vector>

namespace verbatim::bench {

namespace {

/// Numbers to take keys and values from, at ever other places.
std::vector<float> random_numbers(size_t count) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(generator);
  return numbers;
}

}  // namespace

std::unique_ptr<KvCache> filled_cache(const CacheOptions& options, const CacheShape& shape, int64_t positions,
                                      int64_t more, ThreadTeam& team,
                                      const std::function<void(double)>& progress) {
  std::unique_ptr<KvCache> cache = make_cache(options, shape, positions + more);
  constexpr size_t kPlaces = 1 << 14;
  const std::vector<float> numbers = random_numbers(kPlaces + 2 * static_cast<size_t>(shape.head_dim));
  for (int64_t first = 0; first < positions; first += kAttentionChunk) {
    const int64_t end = std::min(positions, first + kAttentionChunk);
    // By heads: threads may not settle one head of two layers at a time.
    team.split(shape.kv_heads, [&](int64_t begin, int64_t stop) {
      for (int64_t h = begin * shape.layers; h < stop * shape.layers; ++h) {
        const int64_t layer = h % shape.layers;
        const int64_t head = h / shape.layers;
        for (int64_t p = first; p < end; ++p) {
          const float* const from = numbers.data() + static_cast<size_t>(p * 7919 + h * 104729) % kPlaces;
          cache->write(layer, head, p, from, from + shape.head_dim);
        }
        if (cache->has_positions_to_encode(layer, end - 1))
          cache->encode_older_positions(layer, head, end - 1);
      }
    });
    for (int64_t layer = 0; layer < shape.layers; ++layer) cache->finish_encoding(layer, end - 1);
    if (progress) progress(static_cast<double>(end) / static_cast<double>(positions));
  }
  cache->set_length(positions);
  return cache;
}

}  // namespace verbatim::bench
