#pragma once

#include "kernels/generic/each_index.h"
#include "kernels/kernel_table.h"

namespace verbatim::generic {

// Products with weights that are looked up in tables (formats/squeeze.h). Every output column has a table of
// its own, so the codes of a column lie together along k, 32 words of which are a subtile.

/// The codes of `squeeze4`: a group is 128 inputs, 64 bytes; subtile s is bits 4 s .. 4 s + 3 of each of 32
/// words.
template <typename W>
struct Squeeze4 {
  using Words = W;
  static constexpr int kLevels = 16;
  static constexpr int kSubtiles = 4;
  static constexpr int64_t kBytes = 64;

  struct Group {
    W words;
  };
  VERBATIM_INLINE static Group load(const uint8_t* codes) { return {W::load(codes)}; }
  template <int kSubtile>
  VERBATIM_INLINE static W look_up(const Group& group, const typename W::Table& table) {
    return W::look_up16(table, group.words.template nibbles<4 * kSubtile>());
  }
};

/// The codes of `squeeze3`: a group is 256 inputs, 96 bytes. The low two bits of subtile s are bits 2 s, 2 s
/// + 1 of each of 32 words; the upper bit is bit s of each of the 32 bytes after them.
template <typename W>
struct Squeeze3 {
  using Words = W;
  static constexpr int kLevels = 8;
  static constexpr int kSubtiles = 8;
  static constexpr int64_t kBytes = 96;

  struct Group {
    W low;
    W upper;
  };
  VERBATIM_INLINE static Group load(const uint8_t* codes) {
    return {W::load(codes), W::widen_bytes(codes + 64)};
  }
  template <int kSubtile>
  VERBATIM_INLINE static W look_up(const Group& group, const typename W::Table& table) {
    W upper = group.upper;
    if constexpr (kSubtile < 2) upper = upper.template shift_left<2 - kSubtile>();
    if constexpr (kSubtile > 2) upper = upper.template shift_right<kSubtile - 2>();
    const W shifted = group.low.template shift_right<2 * kSubtile>();
    return W::look_up32(table, select(W::set(3), shifted, upper));
  }
};

/// Unpacks a group of codes of one column; the subtiles are `out_stride` words apart.
template <typename Codes>
VERBATIM_INLINE void unpack_squeezed(const uint8_t* codes, const typename Codes::Words::Table& table,
                                     uint16_t* out, int64_t out_stride) {
  const typename Codes::Group group = Codes::load(codes);
  each_index<Codes::kSubtiles>([&]<int kSubtile>() __attribute__((always_inline)) {
    Codes::template look_up<kSubtile>(group, table).store(out + kSubtile * out_stride);
  });
}

/// Loads a column's table, repeated to the 32 entries of a look-up.
template <typename Codes>
VERBATIM_INLINE typename Codes::Words::Table squeeze_table(const SqueezeProduct& p, int64_t column) {
  uint16_t entries[32];
  for (int i = 0; i < 32; i += Codes::kLevels) {
    __builtin_memcpy(entries + i, p.tables + column * Codes::kLevels, Codes::kLevels * sizeof *entries);
  }
  return Codes::Words::table(entries);
}

/// Sixteen pairs of activations or weights: the first of all pairs, and the second.
template <typename V>
struct Pairs {
  V even;
  V odd;
};
template <typename V>
VERBATIM_INLINE Pairs<V> load_squeezed_pairs(const uint16_t* words) {
  Pairs<V> pairs;
  V::load_pairs(reinterpret_cast<const BFloat16*>(words), &pairs.even, &pairs.odd);
  return pairs;
}

/// How many bytes ahead of the product memory is asked for codes, so that reading goes on while tables are
/// looked up.
inline constexpr int64_t kSqueezedAhead = 4096;

/// The product of kRows rows with a panel. Each output has sixteen partial sums over k in order, which one
/// fixed tree combines at the end. Weights are multiplied where they are looked up, group by group with all
/// columns, so that codes are read as they lie; meanwhile the sums of other columns wait in the first-level
/// cache, and columns hide each other's latency.
template <typename V, typename Codes, int kRows>
void squeeze_rows(const SqueezeProduct& p, int64_t panel, int64_t row) {
  typename Codes::Words::Table tables[kPanelWidth];
  V sums[kPanelWidth][kRows];
  for (int column = 0; column < kPanelWidth; ++column) {
    tables[column] = squeeze_table<Codes>(p, panel * kPanelWidth + column);
    for (V& sum : sums[column]) sum = V::set(0.0f);
  }
  const uint8_t* codes = p.codes + panel * p.groups * kPanelWidth * Codes::kBytes;
  const BFloat16* const a = p.a + row * p.a_stride;
  for (int64_t g = 0; g < p.groups; ++g) {
    Pairs<V> activations[Codes::kSubtiles][kRows];
    for (int s = 0; s < Codes::kSubtiles; ++s) {
      for (int r = 0; r < kRows; ++r) {
        Pairs<V>& pairs = activations[s][r];
        V::load_pairs(a + r * p.a_stride + (g * Codes::kSubtiles + s) * 32, &pairs.even, &pairs.odd);
      }
    }
    for (int column = 0; column < kPanelWidth; ++column, codes += Codes::kBytes) {
      __builtin_prefetch(codes + kSqueezedAhead);
      const typename Codes::Group group = Codes::load(codes);
      V sum[kRows];
      for (int r = 0; r < kRows; ++r) sum[r] = sums[column][r];
      each_index<Codes::kSubtiles>([&]<int kSubtile>() __attribute__((always_inline)) {
        alignas(64) uint16_t words[32];  // stays in registers
        Codes::template look_up<kSubtile>(group, tables[column]).store(words);
        const Pairs<V> weights = load_squeezed_pairs<V>(words);
        for (int r = 0; r < kRows; ++r) {
          sum[r] = fma_of_bf16(activations[kSubtile][r].even, weights.even, sum[r]);
          sum[r] = fma_of_bf16(activations[kSubtile][r].odd, weights.odd, sum[r]);
        }
      });
      for (int r = 0; r < kRows; ++r) sums[column][r] = sum[r];
    }
  }
  float* const c = p.c + row * p.c_stride + panel * kPanelWidth;
  for (int column = 0; column < kPanelWidth; ++column) {
    for (int r = 0; r < kRows; ++r) c[r * p.c_stride + column] = reduce_add(sums[column][r]);
  }
}

/// The product. Several rows share the look-ups.
template <typename V, typename Codes>
void squeeze_product(const SqueezeProduct& p) {
  constexpr int kMostRows = V::kSums >= 16 ? 8 : 4;
  for (int64_t panel = 0; panel < p.panel_count; ++panel) {
    int64_t row = 0;
    for (; row + kMostRows <= p.rows; row += kMostRows) squeeze_rows<V, Codes, kMostRows>(p, panel, row);
    for (; row + 2 <= p.rows; row += 2) squeeze_rows<V, Codes, 2>(p, panel, row);
    if (row < p.rows) squeeze_rows<V, Codes, 1>(p, panel, row);
  }
}

}  // namespace verbatim::generic
