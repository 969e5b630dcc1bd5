#pragma once

#include "kernels/generic/unpacked_words.h"

namespace verbatim::generic {

/// Halves of the codes of the quad kQuad of a tile of Q8_0 in one of its planes, brought to bit kTo.
template <typename Dot, int kQuad, int kTo>
VERBATIM_INLINE auto halves_of_quad(const uint8_t* plane) {
  return Dot::template bits<kQuad % 2 * 4, 4, kTo>(Dot::load(plane + kQuad / 2 * 64));
}

/// The product of many rows with the codes of Q8_0, which are unpacked to words for all of them.
template <typename V, typename Dot>
struct HalvesUnpacked {
  using Sum = typename Dot::Sum;
  static constexpr int64_t kTileBytes = 256;  // of each plane
  static constexpr int64_t kTilesOfBlock = kBlockInputs / kInnerStep;
  static constexpr int kMostRows = kUnpackedRowsAtOnce<V>;

  /// Whether the rows of a product have words, and are so many that it is faster this way.
  static bool pays(const HalvesProduct& p) {
    constexpr int64_t kLeastRows = MultipliesWords<Dot> ? 8 : kUnpackedRows;
    static_assert(kLeastRows >= kMostRows / 2);  // for_unpacked_rows()
    return p.row_count >= kLeastRows && p.rows[0].words != nullptr;
  }

  template <int kQuad = 0>
  VERBATIM_INLINE static void unpack_tile(const uint8_t* upper, const uint8_t* lower, int64_t tile,
                                          UnpackedWords& to) {
    const auto codes = Dot::join(halves_of_quad<Dot, kQuad, 4>(upper), halves_of_quad<Dot, kQuad, 0>(lower));
    to.set_quad<Dot, 128>(tile * kInnerStep / 4 + kQuad, codes);
    if constexpr (kQuad < 7) unpack_tile<kQuad + 1>(upper, lower, tile, to);
  }

  /// Adds the products of the tiles `first` .. `first` + `tiles` - 1 of a panel, which `weights` holds, with
  /// kRows rows to the results at `c`.
  template <int kRows>
  [[gnu::noinline]] static void multiply(const UnpackedWords& weights, const Float16* scales,
                                         const TwoByteRow* rows, int64_t first, int64_t tiles, float* c,
                                         int64_t c_stride) {
    const int16_t* a[kRows];
    float steps[kRows];
    V sums[kRows];
    for (int r = 0; r < kRows; ++r) {
      a[r] = rows[r].words + first * kInnerStep;
      steps[r] = rows[r].steps[first / kTilesOfBlock];
      sums[r] = first == 0 ? V::set(0.0f) : V::load(c + r * c_stride);
    }
    for (int64_t tile = 0; tile < tiles; ++tile) {
      Sum dots[kRows];
      start_sums<Dot>(dots);
      add_unpacked<Dot, kInnerStep>(weights, tile * kInnerStep, a, dots);
      const V scale = V::load(scales + tile * kPanelWidth);
      for (int r = 0; r < kRows; ++r) {
        // The product of the scale and the step alone may be subnormal, and slow; hence this order.
        sums[r] = fma(Dot::to_float(dots[r]) * scale, V::set(steps[r]), sums[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) sums[r].store(c + r * c_stride);
  }

  static void product(const HalvesProduct& p) {
    UnpackedWords unpacked;
    for_equal_shares(p.row_count, kUnpackedRowsTogether, [&](int64_t first_row, int64_t count) {
      for (int64_t first = 0; first < p.tiles; first += kTilesOfBlock) {
        const int64_t tiles = p.tiles - first < kTilesOfBlock ? p.tiles - first : kTilesOfBlock;
        for (int64_t panel = 0; panel < p.panel_count; ++panel) {
          const int64_t at = panel * p.tiles + first;
          const int64_t next_of_first = first + tiles < p.tiles ? first + tiles : 0;
          const int64_t next = panel + 1 < p.panel_count ? at + p.tiles : next_of_first;
          for (int64_t tile = 0; tile < tiles; ++tile) {
            for (int64_t line = 0; line < kTileBytes; line += 64) {
              __builtin_prefetch(p.upper + (next + tile) * kTileBytes + line);
              __builtin_prefetch(p.lower + (next + tile) * kTileBytes + line);
            }
            unpack_tile(p.upper + (at + tile) * kTileBytes, p.lower + (at + tile) * kTileBytes, tile,
                        unpacked);
          }
          const Float16* const scales = p.scales + at * kPanelWidth;
          float* const c = p.c + first_row * p.c_stride + panel * kPanelWidth;
          for_unpacked_rows<kMostRows>(
              count, [&]<int kRows>(int64_t row) __attribute__((always_inline)) {
                multiply<kRows>(unpacked, scales, p.rows + first_row + row, first, tiles,
                                c + row * p.c_stride, p.c_stride);
              });
        }
      }
    });
  }
};

}  // namespace verbatim::generic
