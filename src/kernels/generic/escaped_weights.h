#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// The number of weights in a tile of 32 inputs and 16 columns.
inline constexpr int64_t kTileWords = 512;

/// The distance, in entries, at which escaped weights are prefetched before they are put in place: some eight
/// tiles of MXBF16.
inline constexpr uint64_t kEscapedAhead = 96;

/// The number of entries of a half tile with this count.
VERBATIM_INLINE uint32_t listed_escaped(uint32_t count) {
  return count == kZeroHalf ? 0 : count == kFullHalf ? 256 : count;
}

/// Overwrites the half tile at `out` with its escaped weights. They are taken eight at a time, the last one
/// again and again where there are fewer, because a processor seldom guesses right where a loop over some six
/// of them ends.
VERBATIM_INLINE void apply_escaped_weights(const EscapedWeights& lists, int64_t half, uint64_t* next,
                                           uint16_t* out) {
  const int listed = lists.counts[half];
  if (listed == kZeroHalf) {
    __builtin_memset(out, 0, kTileWords / 2 * sizeof *out);
    return;
  }
  const int count = static_cast<int>(listed_escaped(static_cast<uint32_t>(listed)));
  const uint8_t* const positions = lists.positions + *next;
  const uint16_t* const values = lists.values + *next;
  constexpr int kAtOnce = 8;
  for (int first = 0; first < count; first += kAtOnce) {
#pragma GCC unroll 8
    for (int i = first; i < first + kAtOnce; ++i) {
      const int entry = i < count ? i : count - 1;
      out[positions[entry]] = values[entry];
    }
  }
  *next += count;
}

/// Prefetches the entries that are put in place some tiles after the one with index `next`.
VERBATIM_INLINE void prefetch_escaped_weights(const EscapedWeights& lists, uint64_t next) {
  __builtin_prefetch(lists.positions + next + kEscapedAhead);
  __builtin_prefetch(lists.values + next + kEscapedAhead);
}

VERBATIM_INLINE void apply_tile_escaped_weights(const EscapedWeights& lists, int64_t index, uint64_t* next,
                                                uint16_t* out) {
  prefetch_escaped_weights(lists, *next);
  apply_escaped_weights(lists, index * 2, next, out);
  apply_escaped_weights(lists, index * 2 + 1, next, out + kTileWords / 2);
}

}  // namespace verbatim::generic
