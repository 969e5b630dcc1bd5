#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

// Products with weights that are looked up in tables (formats/squeeze.h). Every output column has a table of
// its own, so the codes of a column lie together along k, and unpacked tiles are [16 columns][32 inputs].

/// The codes of `squeeze4`: a group is 128 inputs, 64 bytes; subtile s is bits 4 s .. 4 s + 3 of each of 32
/// words.
template <typename W>
struct Squeeze4 {
  using Words = W;
  static constexpr int kLevels = 16;
  static constexpr int64_t kSubtiles = 4;
  static constexpr int64_t kBytes = 64;

  VERBATIM_INLINE static void unpack(const uint8_t* codes, typename W::Table table, uint16_t* out,
                                     int64_t out_stride) {
    const W words = W::load(codes);
    W::look_up16(table, words).store(out);
    W::look_up16(table, words.template nibbles<4>()).store(out + out_stride);
    W::look_up16(table, words.template nibbles<8>()).store(out + 2 * out_stride);
    W::look_up16(table, words.template nibbles<12>()).store(out + 3 * out_stride);
  }
};

/// The codes of `squeeze3`: a group is 256 inputs, 96 bytes. The low two bits of subtile s are bits 2 s, 2 s
/// + 1 of each of 32 words; the upper bit is bit s of each of the 32 bytes after them.
template <typename W>
struct Squeeze3 {
  using Words = W;
  static constexpr int kLevels = 8;
  static constexpr int64_t kSubtiles = 8;
  static constexpr int64_t kBytes = 96;

  template <int kSubtile>
  VERBATIM_INLINE static void unpack_one(W low, W upper, typename W::Table table, uint16_t* out) {
    if constexpr (kSubtile < 2) upper = upper.template shift_left<2 - kSubtile>();
    if constexpr (kSubtile > 2) upper = upper.template shift_right<kSubtile - 2>();
    const W shifted = low.template shift_right<2 * kSubtile>();
    W::look_up32(table, select(W::set(3), shifted, upper)).store(out);
  }

  VERBATIM_INLINE static void unpack(const uint8_t* codes, typename W::Table table, uint16_t* out,
                                     int64_t out_stride) {
    const W low = W::load(codes);
    const W upper = W::widen_bytes(codes + 64);
    unpack_one<0>(low, upper, table, out);
    unpack_one<1>(low, upper, table, out + out_stride);
    unpack_one<2>(low, upper, table, out + 2 * out_stride);
    unpack_one<3>(low, upper, table, out + 3 * out_stride);
    unpack_one<4>(low, upper, table, out + 4 * out_stride);
    unpack_one<5>(low, upper, table, out + 5 * out_stride);
    unpack_one<6>(low, upper, table, out + 6 * out_stride);
    unpack_one<7>(low, upper, table, out + 7 * out_stride);
  }
};

/// Loads a column's table, repeated to the 32 entries of a look-up.
template <typename Codes>
VERBATIM_INLINE typename Codes::Words::Table squeeze_table(const SqueezeProduct& p, int64_t column) {
  uint16_t entries[32];
  for (int i = 0; i < 32; i += Codes::kLevels) {
    __builtin_memcpy(entries + i, p.tables + column * Codes::kLevels, Codes::kLevels * sizeof *entries);
  }
  return Codes::Words::table(entries);
}

/// Unpacks one panel to [tile][16][32] words.
template <typename Codes>
void unpack_squeeze_panel(const SqueezeProduct& p, int64_t panel, uint16_t* out) {
  for (int column = 0; column < kPanelWidth; ++column) {
    const auto table = squeeze_table<Codes>(p, panel * kPanelWidth + column);
    for (int64_t g = 0; g < p.groups; ++g) {
      const uint8_t* const codes = p.codes + ((panel * p.groups + g) * kPanelWidth + column) * Codes::kBytes;
      Codes::unpack(codes, table, out + g * Codes::kSubtiles * 512 + column * 32, 512);
    }
  }
}

/// The product: each output has sixteen partial sums over k in order, which one fixed tree combines at the
/// end.
template <typename V, int kRows>
VERBATIM_INLINE void squeeze_rows(const SqueezeProduct& p, const uint16_t* tiles, int64_t tile_count,
                                  int64_t row, float* c) {
  const BFloat16* const a = p.a + row * p.a_stride;
  for (int column = 0; column < kPanelWidth; ++column) {
    V sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = V::set(0.0f);
    for (int64_t t = 0; t < tile_count; ++t) {
      V even;
      V odd;
      V::load_pairs(reinterpret_cast<const BFloat16*>(tiles + t * 512 + column * 32), &even, &odd);
      for (int r = 0; r < kRows; ++r) {
        V a_even;
        V a_odd;
        V::load_pairs(a + r * p.a_stride + t * 32, &a_even, &a_odd);
        sums[r] = fma_of_bf16(a_even, even, sums[r]);
        sums[r] = fma_of_bf16(a_odd, odd, sums[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) c[r * p.c_stride + column] = reduce_add(sums[r]);
  }
}

template <typename V, typename Codes>
void squeeze_product(const SqueezeProduct& p) {
  const int64_t tiles = p.groups * Codes::kSubtiles;
  for (int64_t panel = 0; panel < p.panel_count; ++panel) {
    unpack_squeeze_panel<Codes>(p, panel, p.scratch);
    float* const c = p.c + panel * kPanelWidth;
    int64_t row = 0;
    for (; row + 4 <= p.rows; row += 4) squeeze_rows<V, 4>(p, p.scratch, tiles, row, c + row * p.c_stride);
    for (; row < p.rows; ++row) squeeze_rows<V, 1>(p, p.scratch, tiles, row, c + row * p.c_stride);
  }
}

}  // namespace verbatim::generic
