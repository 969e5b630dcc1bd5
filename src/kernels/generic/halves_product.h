#pragma once

#include "kernels/generic/halves_unpacked.h"

namespace verbatim::generic {

// Products of rows of activations in two bytes with the codes of Q8_0, which lie as two planes of halves. The
// products of a tile of 32 inputs are integers, exact and free to be reordered: Σ (code - 128) · activation.
// The sum becomes a float, is multiplied with the column's F16 scale and the row's step and added to the
// result, tile after tile.

/// The product with halves of codes. `Dot` is the instruction set's part (generic/block_codes.h,
/// generic/integer_dots.h).
template <typename V, typename Dot>
struct HalvesMicro {
  using Sum = typename Dot::Sum;
  using Partial = typename Dot::Partial;
  static constexpr int kStreams = 4;
  /// Whether rows are words: where dot products of bytes add up in sixteen bits, they would have to be of
  /// halves of codes.
  static constexpr bool kInWords = MultipliesWords<Dot>;
  /// As many rows as there are registers for their sums, beside a register of codes and one of activations.
  static constexpr int kMostRows = V::kSums > 4 ? 4 : kInWords ? 6 : 2;
  static constexpr int64_t kTileBytes = 256;    // of each plane
  static constexpr int64_t kPrefetchTiles = 8;  // how far ahead
  static constexpr int64_t kTilesOfBlock = kBlockInputs / kInnerStep;

  /// The products of the bytes of rows: those of the upper ones, then those of the lower ones.
  template <int kRows>
  using Sums = Sum[kRows][2];

  template <int kQuad, int kTo>
  VERBATIM_INLINE static auto halves(const uint8_t* plane) {
    return halves_of_quad<Dot, kQuad, kTo>(plane);
  }

  template <int kRows>
  VERBATIM_INLINE static void open(const Sums<kRows>& sums, Partial (&partial)[kRows][2]) {
    for (int r = 0; r < kRows; ++r) {
      for (int byte = 0; byte < 2; ++byte) partial[r][byte] = Dot::open(sums[r][byte]);
    }
  }
  template <int kRows>
  VERBATIM_INLINE static void close(Sums<kRows>& sums, const Partial (&partial)[kRows][2]) {
    for (int r = 0; r < kRows; ++r) {
      for (int byte = 0; byte < 2; ++byte) sums[r][byte] = Dot::close(sums[r][byte], partial[r][byte]);
    }
  }

  /// Adds the products of the quads from kQuad on with whole codes, or with the halves of the plane `upper`
  /// alone.
  template <int kRows, bool kWhole, int kQuad = 0>
  VERBATIM_INLINE static void add_quads(const uint8_t* upper, [[maybe_unused]] const uint8_t* lower,
                                        const int8_t* const (&a)[kRows][2], Partial (&partial)[kRows][2]) {
    const auto weights = [&]() __attribute__((always_inline)) {
      if constexpr (kWhole) {
        return Dot::join(halves<kQuad, 4>(upper), halves<kQuad, 0>(lower));
      } else {
        return halves<kQuad, 0>(upper);
      }
    }
    ();
    for (int r = 0; r < kRows; ++r) {
      for (int byte = 0; byte < 2; ++byte)
        partial[r][byte] = Dot::add(partial[r][byte], weights, a[r][byte] + kQuad * 4);
    }
    if constexpr (kQuad < 7) add_quads<kRows, kWhole, kQuad + 1>(upper, lower, a, partial);
  }

  // Rows are counted by templates where their sums are to stay in registers: the compiler keeps an array in
  // memory whose elements a loop chooses.

  template <int kRows, int kRow = 0>
  VERBATIM_INLINE static void start_words(const int32_t (&starts)[kRows], Sum (&totals)[kRows]) {
    totals[kRow] = Dot::start(starts[kRow]);
    if constexpr (kRow + 1 < kRows) start_words<kRows, kRow + 1>(starts, totals);
  }
  template <int kRows, int kRow = 0>
  VERBATIM_INLINE static void add_scaled(const Sum (&totals)[kRows], const V& scale, const V (&steps)[kRows],
                                         V (&sums)[kRows]) {
    // The product of the scale and the step alone may be subnormal, and slow; hence this order.
    sums[kRow] = fma(Dot::to_float(totals[kRow]) * scale, steps[kRow], sums[kRow]);
    if constexpr (kRow + 1 < kRows) add_scaled<kRows, kRow + 1>(totals, scale, steps, sums);
  }

  /// Adds the products of the quads from kQuad on with words of activations.
  template <int kRows, int kQuad = 0>
  VERBATIM_INLINE static void add_words(const uint8_t* upper, const uint8_t* lower,
                                        const int16_t* const (&a)[kRows], Sum (&totals)[kRows]) {
    const auto codes = Dot::join(halves<kQuad, 4>(upper), halves<kQuad, 0>(lower));
    add_words_of_rows<Dot, kRows>(Dot::even_words(codes), a, kQuad * 4, totals);
    add_words_of_rows<Dot, kRows>(Dot::odd_words(codes), a, kQuad * 4 + 2, totals);
    if constexpr (kQuad < 7) add_words<kRows, kQuad + 1>(upper, lower, a, totals);
  }

  /// The sums of the products of a tile with the bytes of the rows at `a`, from `starts` on.
  template <int kRows>
  VERBATIM_INLINE static void dot_tile(const uint8_t* upper, const uint8_t* lower,
                                       const int8_t* const (&a)[kRows][2], const int32_t (&starts)[kRows],
                                       Sum (&totals)[kRows]) {
    Sums<kRows> sums;
    Partial partial[kRows][2];
    for (int r = 0; r < kRows; ++r) {
      sums[r][0] = Dot::start(0);
      sums[r][1] = Dot::start(Dot::kWholeBytes ? starts[r] : 0);
    }
    open<kRows>(sums, partial);
    add_quads<kRows, Dot::kWholeBytes>(upper, lower, a, partial);
    close<kRows>(sums, partial);
    if constexpr (!Dot::kWholeBytes) {
      // Eight quads of halves are 2 · 8 · 128 · 15 at most, and so fit into a partial sum; whole codes do
      // not.
      Sums<kRows> rest;
      for (int r = 0; r < kRows; ++r) {
        rest[r][0] = Dot::start(0);
        rest[r][1] = Dot::start(starts[r]);
      }
      open<kRows>(rest, partial);
      add_quads<kRows, false>(lower, nullptr, a, partial);
      close<kRows>(rest, partial);
      for (int r = 0; r < kRows; ++r) {
        for (int byte = 0; byte < 2; ++byte)
          sums[r][byte] = Dot::template add_shifted<4>(rest[r][byte], sums[r][byte]);
      }
    }
    for (int r = 0; r < kRows; ++r) totals[r] = Dot::template add_shifted<8>(sums[r][1], sums[r][0]);
  }

  /// Multiplies kRows rows, from `row` on, with the panels `panel`, `panel` + apart, ... side by side,
  /// because a core that reads one place after the other mostly waits for memory.
  template <int kRows, int kPanels>
  static void rows_by_panels(const HalvesProduct& p, int64_t row, int64_t panel, int64_t apart) {
    V sums[kPanels][kRows];
    for (auto& of_panel : sums) {
      for (V& sum : of_panel) sum = V::set(0.0f);
    }
    for (int64_t tile = 0; tile < p.tiles; ++tile) {
      const int8_t* a[kRows][2];
      [[maybe_unused]] const int16_t* words[kRows];
      int32_t starts[kRows];
      V steps[kRows];
      for (int r = 0; r < kRows; ++r) {
        const TwoByteRow& from = p.rows[row + r];
        a[r][0] = from.upper + tile * kInnerStep;
        a[r][1] = from.lower + tile * kInnerStep;
        if constexpr (kInWords) words[r] = from.words + tile * kInnerStep;
        const int32_t* const upper_sums = from.upper_sums + tile * 2;
        const int32_t* const lower_sums = from.lower_sums + tile * 2;
        starts[r] = -128 * (256 * (upper_sums[0] + upper_sums[1]) + lower_sums[0] + lower_sums[1]);
        steps[r] = V::set(from.steps[tile / kTilesOfBlock]);
      }
      // Not unrolled: activations that wait for the next panel would take the registers of sums.
#pragma GCC unroll 1
      for (int j = 0; j < kPanels; ++j) {
        const int64_t at = (panel + j * apart) * p.tiles + tile;
        const uint8_t* const upper = p.upper + at * kTileBytes;
        const uint8_t* const lower = p.lower + at * kTileBytes;
        for (int64_t line = 0; line < kTileBytes; line += 64) {
          __builtin_prefetch(upper + kPrefetchTiles * kTileBytes + line);
          __builtin_prefetch(lower + kPrefetchTiles * kTileBytes + line);
        }
        __builtin_prefetch(p.scales + (at + kPrefetchTiles) * kPanelWidth);
        Sum totals[kRows];
        if constexpr (kInWords) {
          start_words<kRows>(starts, totals);
          add_words<kRows>(upper, lower, words, totals);
        } else {
          dot_tile<kRows>(upper, lower, a, starts, totals);
        }
        add_scaled<kRows>(totals, V::load(p.scales + at * kPanelWidth), steps, sums[j]);
      }
    }
    for (int j = 0; j < kPanels; ++j) {
      float* const c = p.c + row * p.c_stride + (panel + j * apart) * kPanelWidth;
      for (int r = 0; r < kRows; ++r) sums[j][r].store(c + r * p.c_stride);
    }
  }
  /// Multiplies the rows from `row` on with the panels `panel`, `panel` + apart, ..., kRows at a time, and
  /// the rest fewer at a time.
  template <int kPanels, int kRows = kMostRows>
  static void all_rows(const HalvesProduct& p, int64_t panel, int64_t apart, int64_t row = 0) {
    for (; row + kRows <= p.row_count; row += kRows) rows_by_panels<kRows, kPanels>(p, row, panel, apart);
    constexpr int kFewer = kRows == 6 ? 4 : kRows / 2;
    if constexpr (kRows > 1) all_rows<kPanels, kFewer>(p, panel, apart, row);
  }
};

/// KernelTable::halves_product.
template <typename V, typename Dot>
void halves_product(const HalvesProduct& p) {
  if constexpr (UnpacksWords<Dot>) {
    if (HalvesUnpacked<V, Dot>::pays(p)) {
      return HalvesUnpacked<V, Dot>::product(p);
    }
  }
  using Micro = HalvesMicro<V, Dot>;
  const int64_t share = p.panel_count / Micro::kStreams;
  for (int64_t panel = 0; panel < share; ++panel) Micro::template all_rows<Micro::kStreams>(p, panel, share);
  for (int64_t panel = share * Micro::kStreams; panel < p.panel_count; ++panel)
    Micro::template all_rows<1>(p, panel, 0);
}

}  // namespace verbatim::generic
