#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/kernel_table.h"

namespace verbatim::amx {

/// The memory image that LDTILECFG reads.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t rows[16] = {};

  VERBATIM_INLINE void set(int tile, int row_count, int row_bytes) {
    rows[tile] = static_cast<uint8_t>(row_count);
    bytes_per_row[tile] = static_cast<uint16_t>(row_bytes);
  }
  // GCC 12's own intrinsic claims to read the first eight bytes only, so stores to the others may be lost.
  VERBATIM_INLINE void load() const { __asm__ volatile("ldtilecfg %0" ::"m"(*this)); }
};

// The tile registers by number. The compiler's own intrinsics want literals, which template parameters are
// not.

template <int kTile>
VERBATIM_INLINE void tile_zero() {
  __asm__ volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kTile>
VERBATIM_INLINE void tile_load(const void* from, int64_t stride_bytes) {
  __asm__ volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(kTile), "r"(from), "r"(stride_bytes) : "memory");
}
template <int kTile>
VERBATIM_INLINE void tile_store(void* to, int64_t stride_bytes) {
  __asm__ volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(kTile), "r"(to), "r"(stride_bytes) : "memory");
}
/// Tile product in BF16: sums += a · b over pairs.
template <int kSums, int kA, int kB>
VERBATIM_INLINE void tile_dot_bf16() {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kA), "i"(kB));
}
/// Tile product in integers: sums += a · b over quads of bytes, where a is signed and b signed or unsigned.
template <int kSums, int kA, int kB, bool kUnsignedB>
VERBATIM_INLINE void tile_dot_int8() {
  if constexpr (kUnsignedB) {
    __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kA), "i"(kB));
  } else {
    __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kA), "i"(kB));
  }
}

}  // namespace verbatim::amx
