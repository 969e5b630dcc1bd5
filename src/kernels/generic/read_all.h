#pragma once

#include <cstddef>
#include <cstdint>

namespace verbatim::generic {

/// Computes the xor of all 64-bit words of `bytes` bytes (the last one filled up with zeros), reading as fast
/// as the memory allows: the yardstick for kernels that stream weights. V only keeps the versions of the
/// instruction sets apart; the compiler chooses each set's instructions for Line.
template <typename V>
uint64_t read_all(const std::byte* data, int64_t bytes) {
  // On Xeons one stream per thread leaves memory waiting: a prefetcher does not cross a page and starts
  // anew in each. Eight streams, whose pages end at different times, read up to half as much again.
  constexpr int kStreams = 8;
  constexpr int kLines = 4;
  constexpr int64_t kPrefetchBytes = 2048;
  typedef uint64_t Line __attribute__((vector_size(64)));
  constexpr auto kStep = static_cast<int64_t>(kLines * sizeof(Line));

  // The streams begin at different places within their pages, or they would share the same sets of the cache.
  constexpr int64_t kPage = 4096;
  constexpr int64_t kSkew = 512;
  static_assert(kSkew % kStep == 0);
  const int64_t pages = bytes / kStreams / kPage;
  const int64_t stream_bytes = pages > 0 ? (pages - 1) * kPage + kSkew : 0;
  Line sums[kLines] = {};
  for (int64_t at = 0; at < stream_bytes; at += kStep) {
    for (int stream = 0; stream < kStreams; ++stream) {
      const std::byte* const from = data + stream * stream_bytes + at;
      for (int i = 0; i < kLines; ++i) {
        const std::byte* const line = from + i * static_cast<int64_t>(sizeof(Line));
        __builtin_prefetch(line + kPrefetchBytes);
        Line value;
        __builtin_memcpy(&value, line, sizeof value);
        sums[i] ^= value;
      }
    }
  }
  const Line folded = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
  uint64_t result = 0;
  for (int i = 0; i < 8; ++i) result ^= folded[i];
  for (int64_t at = kStreams * stream_bytes; at < bytes; at += 8) {
    uint64_t word = 0;
    __builtin_memcpy(&word, data + at, static_cast<size_t>(bytes - at < 8 ? bytes - at : 8));
    result ^= word;
  }
  return result;
}

}  // namespace verbatim::generic
