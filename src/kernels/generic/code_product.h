#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

inline constexpr int64_t kCodeTileInner = 64;
/// Bytes of a tile in a plane of CodeProduct.
inline constexpr int64_t code_tile_bytes(int storage) {
  return storage == kCodesBytes ? 1024 : 512;
}

/// A code of a tile: that of inner dimension k and column i.
template <int kStorage>
VERBATIM_INLINE int32_t code_at(const uint8_t* codes, const uint8_t* lower, int64_t k, int64_t i) {
  const int64_t place = i * 4 + k % 4;
  if constexpr (kStorage == kCodesBytes) {
    return codes[k / 4 * 64 + place];
  } else {
    const int64_t at = k / 8 * 64 + place;
    const int shift = k / 4 % 2 * 4;
    const int32_t upper = codes[at] >> shift & 15;
    return kStorage == kCodesUpper ? upper : 16 * upper + (lower[at] >> shift & 15);
  }
}

/// The product as its definition has it, for machines without anything better. V only keeps the instruction
/// sets' versions apart.
template <typename V, int kStorage>
void code_product(const CodeProduct& p) {
  constexpr int64_t kBytes = code_tile_bytes(kStorage);
  for (int64_t r = 0; r < p.rows; ++r) {
    const int8_t* const upper = p.a + r * 2 * p.k;
    const int8_t* const lower = upper + p.k;
    for (int64_t panel = 0; panel < p.panel_count; ++panel) {
      int32_t sums[kPanelWidth] = {};
      for (int64_t k = 0; k < p.k; ++k) {
        const int64_t tile = (panel * p.k + k) / kCodeTileInner * kBytes;
        const uint8_t* const lower_codes = kStorage == kCodesBoth ? p.lower + tile : nullptr;
        const int32_t a = 256 * upper[k] + lower[k];
        for (int64_t i = 0; i < kPanelWidth; ++i) {
          sums[i] += a * code_at<kStorage>(p.codes + tile, lower_codes, k % kCodeTileInner, i);
        }
      }
      __builtin_memcpy(p.c + r * p.c_stride + panel * kPanelWidth, sums, sizeof sums);
    }
  }
}

template <typename V>
void fill_code_product(decltype(KernelTable::code_product)& table) {
  table[kCodesUpper] = code_product<V, kCodesUpper>;
  table[kCodesBoth] = code_product<V, kCodesBoth>;
  table[kCodesBytes] = code_product<V, kCodesBytes>;
}

}  // namespace verbatim::generic
