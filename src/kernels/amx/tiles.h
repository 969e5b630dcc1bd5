#pragma once

#include <immintrin.h>

#include <cstdint>

#define VERBATIM_INLINE [[gnu::always_inline]] inline

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
  VERBATIM_INLINE void load() const { _tile_loadconfig(this); }
};

}  // namespace verbatim::amx
