#pragma once

#include "kernels/generic/block_byte_rows.h"
#include "kernels/generic/block_unpacked.h"
#include "kernels/generic/block_word_rows.h"

namespace verbatim::generic {

// Products with the blocks of K-quants. In a block of 256 inputs all sums are of integers, exact and free to
// be reordered: a column's sum is Σ scale · Σ (code - bias) · activation over its groups. It becomes a float
// (value_of_block()), is multiplied with the column's F16 scale and the row's step and added to the result,
// block after block. Before that the offsets of the block's groups, each times the sum of its activations,
// are subtracted from the result, group after group.

/// KernelTable::quantize_two_bytes. A block with a number that is not finite has NaN as its step and as the
/// sums of its activations, so that no product of the row hides it; its codes are some codes.
template <typename V>
void quantize_two_bytes(const float* x, int64_t n, const TwoByteRow& out) {
  constexpr float kLimit = kLargestRowCode;
  constexpr float kLeast = 7.8886090522101181e-31f;   // 2^-100; smaller ones count as zero
  constexpr float kLargest = 9.9035203142830422e27f;  // 2^93
  constexpr int64_t kGroups = kBlockInputs / 16;
  for (int64_t begin = 0, block = 0; begin < n; begin += kBlockInputs, ++block) {
    alignas(64) float values[kBlockInputs];
    const int64_t count = n - begin < kBlockInputs ? n - begin : kBlockInputs;
    V largest = V::set(0.0f);
    V poison = V::set(0.0f);  // becomes NaN where a number is not finite
    for (int64_t i = 0; i < count; i += 16) {
      const V value = V::load(x + begin + i);
      value.store(values + i);
      largest = max(largest, absolute(value));
      poison = poison + value * V::set(0.0f);
    }
    const bool finite = reduce_add(poison) == 0.0f;
    for (int64_t i = count; i < kBlockInputs; i += 16) V::set(0.0f).store(values + i);
    float extreme = reduce_max(largest);
    if (!(extreme < kLargest)) extreme = kLargest;  // NaN as well
    const float step = !finite ? __builtin_nanf("") : extreme < kLeast ? 0.0f : extreme / kLimit;
    const V factor = V::set(extreme < kLeast ? 0.0f : kLimit / extreme);
    alignas(64) int8_t unused[kBlockInputs];
    int8_t* const upper = out.upper + begin;
    int8_t* const lower = out.lower != nullptr ? out.lower + begin : unused;
    for (int64_t i = 0; i < kBlockInputs; i += 64) {
      V four[4];
      for (int j = 0; j < 4; ++j) {
        const V value = V::load(values + i + 16 * j) * factor;
        four[j] = min(max(value, V::set(-kLimit)), V::set(kLimit));
      }
      V::store_two_int8(four, upper + i, lower + i);
    }
    out.steps[block] = step;
    int32_t before = 0;
    for (int64_t group = 0; group < kGroups; ++group) {
      int32_t uppers = 0;
      int32_t lowers = 0;
      for (int64_t i = group * 16; i < group * 16 + 16; ++i) {
        uppers += upper[i];
        lowers += lower[i];
      }
      out.upper_sums[block * kGroups + group] = uppers;
      int32_t sum = 256 * uppers;
      if (out.lower != nullptr) {
        out.lower_sums[block * kGroups + group] = lowers;
        sum += lowers;
      }
      out.of_16[block * kGroups + group] = static_cast<float>(-sum) * step;
      if (group % 2 == 1)
        out.of_32[(block * kGroups + group) / 2] = static_cast<float>(-(before + sum)) * step;
      before = sum;
    }
  }
}

/// The product with blocks of one shape. `RowsOf`, BlockByteRows or BlockWordRows, holds the rows and
/// multiplies them.
template <typename V, typename Dot, BlockShape kShape, typename RowsOf>
struct BlockMicro {
  using Codes = BlockCodes<Dot, kShape>;
  static constexpr BlockLayout kLayout = block_layout(kShape);
  static constexpr int kTiles = kBlockInputs / kInnerStep;
  static constexpr int kStreams = 4;

  template <int kRows>
  struct Rows {
    typename RowsOf::template Rows<kRows> codes;
    const float* group_sums[kRows];
    const float* steps[kRows];
  };
  template <int kRows>
  using Totals = typename RowsOf::template Totals<kRows>;

  /// A group of a tile: its scaled products are added to `totals`, its offsets to `sums`.
  template <int kGroup, int kRows>
  VERBATIM_INLINE static void add_group(const uint8_t* block, const uint8_t* tile, int index, int64_t at,
                                        const Rows<kRows>& a, const V& offset_scale, Totals<kRows>& totals,
                                        V (&sums)[kRows]) {
    const int group = index * Codes::kGroupsOfTile + kGroup;
    const int64_t group_at = at / kLayout.group + group;  // counted over the row
    RowsOf::template add_group<kGroup, kRows>(block, tile, group, group_at, at + index * kInnerStep, a.codes,
                                              totals);
    if constexpr (kLayout.offsets) {
      const auto offsets = Dot::unsigned_bytes(block + kLayout.offsets_at() + group * kPanelWidth);
      const V offset = Dot::to_float(offsets) * offset_scale;
      for (int r = 0; r < kRows; ++r) sums[r] = fma(offset, V::set(a.group_sums[r][group_at]), sums[r]);
    }
  }

  /// The cache lines that are asked for while a block is multiplied: at least as many as a block has, from
  /// each of kPanels panels in turn. A burst of lines of one panel would make the others wait.
  template <int kPanels>
  struct Fetch {
    static constexpr int64_t kLines = (kLayout.bytes() + 64 * kPanels - 1) / (64 * kPanels);  // of a panel
    // Lines that the tiles leave over come before them: of several panels two of each at most.
    static constexpr int64_t kLinesOfTile = (kLines + (kPanels > 1 ? kTiles - 3 : 0)) / kTiles;
    static constexpr int64_t kLinesOfTiles = kTiles * kLinesOfTile;
    static constexpr int64_t kLinesBefore = kLines > kLinesOfTiles ? kLines - kLinesOfTiles : 0;

    const uint8_t* from;  ///< the first line of the first panel
    int64_t apart;        ///< the bytes from one panel to the next

    VERBATIM_INLINE void before_tiles() const { lines(0, kLinesBefore); }
    VERBATIM_INLINE void tile(int index) const { lines(kLinesBefore + index * kLinesOfTile, kLinesOfTile); }

   private:
    VERBATIM_INLINE void lines(int64_t first, int64_t count) const {
      for (int64_t line = first; line < first + count; ++line) {
        for (int j = 0; j < kPanels; ++j) __builtin_prefetch(from + j * apart + line * 64);
      }
    }
  };

  /// Adds the products of the rows with a block to `sums`, and asks for lines of the next blocks.
  template <int kRows, int kFetched>
  VERBATIM_INLINE static void add_block(const uint8_t* block, int64_t index, const Rows<kRows>& a,
                                        const Fetch<kFetched>& fetch, V (&sums)[kRows]) {
    const Float16* const scales = reinterpret_cast<const Float16*>(block);
    V offset_scale = V::set(0.0f);
    if constexpr (kLayout.offsets) offset_scale = V::load(scales + kPanelWidth);
    Totals<kRows> totals;
    RowsOf::template start<kRows>(totals);
    fetch.before_tiles();
    const int64_t at = index * kBlockInputs;
    for (int t = 0; t < kTiles; ++t) {
      const uint8_t* const tile = block + kLayout.tiles_at() + t * kLayout.tile_bytes();
      fetch.tile(t);
      add_group<0, kRows>(block, tile, t, at, a, offset_scale, totals, sums);
      if constexpr (Codes::kGroupsOfTile > 1) {
        add_group<1, kRows>(block, tile, t, at, a, offset_scale, totals, sums);
      }
    }
    const V scale = V::load(scales);
    for (int r = 0; r < kRows; ++r) {
      // The product of the scale and the step alone may be subnormal, and slow; hence this order.
      sums[r] = fma(RowsOf::value(totals[r]) * scale, V::set(a.steps[r][index]), sums[r]);
    }
  }

  /// Multiplies kRows rows, from `row` on, with the panels `panel`, `panel` + apart, ... side by side,
  /// because a core that reads one place after the other mostly waits for memory.
  template <int kRows, int kPanels>
  static void rows_by_panels(const BlockProduct& p, int64_t row, int64_t panel, int64_t apart) {
    Rows<kRows> a;
    for (int r = 0; r < kRows; ++r) {
      const TwoByteRow& from = p.rows[row + r];
      a.codes.set(r, from);
      a.group_sums[r] = kLayout.group == 16 ? from.of_16 : from.of_32;
      a.steps[r] = from.steps;
    }
    V sums[kPanels][kRows];
    for (int j = 0; j < kPanels; ++j) {
      for (int r = 0; r < kRows; ++r) sums[j][r] = V::set(0.0f);
    }
    const int64_t panel_bytes = p.blocks * kLayout.bytes();
    const int64_t panels_apart = apart * panel_bytes;
    for (int64_t block = 0; block < p.blocks; ++block) {
      const uint8_t* const from = p.panels + panel * panel_bytes + block * kLayout.bytes();
      for (int j = 0; j < kPanels; ++j) {
        // Products of more rows take longer than memory; to ask for the panel's own lines takes fewer
        // instructions.
        constexpr int kFetched = RowsOf::outlast_memory(kRows) ? 1 : kPanels;
        const uint8_t* const own = from + j * panels_apart;
        const uint8_t* const next = kFetched == 1 ? own : from + j * Fetch<kFetched>::kLines * 64;
        add_block<kRows>(own, block, a, Fetch<kFetched>{next + kLayout.bytes(), panels_apart}, sums[j]);
      }
    }
    for (int j = 0; j < kPanels; ++j) {
      float* const c = p.c + row * p.c_stride + (panel + j * apart) * kPanelWidth;
      for (int r = 0; r < kRows; ++r) sums[j][r].store(c + r * p.c_stride);
    }
  }

  /// Multiplies the rows from `row` on with the panels `panel`, `panel` + apart, ..., kRows at a time, and
  /// the rest fewer at a time.
  template <int kPanels, int kRows = RowsOf::kMostRows>
  static void all_rows(const BlockProduct& p, int64_t panel, int64_t apart, int64_t row = 0) {
    for (; row + kRows <= p.row_count; row += kRows) rows_by_panels<kRows, kPanels>(p, row, panel, apart);
    constexpr int kFewer = kRows == 6 ? 4 : kRows / 2;
    if constexpr (kRows > 1) all_rows<kPanels, kFewer>(p, panel, apart, row);
  }

  static void product(const BlockProduct& p) {
    const int64_t share = p.panel_count / kStreams;
    for (int64_t panel = 0; panel < share; ++panel) all_rows<kStreams>(p, panel, share);
    for (int64_t panel = share * kStreams; panel < p.panel_count; ++panel) all_rows<1>(p, panel, 0);
  }
};

template <typename V, typename Dot, BlockShape kShape>
void block_product(const BlockProduct& p) {
  if (p.row_count == 0) return;
  if (p.rows[0].lower == nullptr) {
    return BlockMicro<V, Dot, kShape, BlockByteRows<V, Dot, kShape, 1>>::product(p);
  }
  if constexpr (UnpacksWords<Dot>) {
    if (BlockUnpacked<V, Dot, kShape>::pays(p)) {
      return BlockUnpacked<V, Dot, kShape>::product(p);
    }
  }
  if constexpr (MultipliesWords<Dot>) {
    BlockMicro<V, Dot, kShape, BlockWordRows<V, Dot, kShape>>::product(p);
  } else {
    BlockMicro<V, Dot, kShape, BlockByteRows<V, Dot, kShape, 2>>::product(p);
  }
}

template <typename V, typename Dot>
void fill_blocks(KernelTable& table) {
  table.rows_in_words = least_rows_in_words<Dot>();
  table.block_product[kBlockQ2] = block_product<V, Dot, kBlockQ2>;
  table.block_product[kBlockQ3] = block_product<V, Dot, kBlockQ3>;
  table.block_product[kBlockQ4] = block_product<V, Dot, kBlockQ4>;
  table.block_product[kBlockQ5] = block_product<V, Dot, kBlockQ5>;
  table.block_product[kBlockQ6] = block_product<V, Dot, kBlockQ6>;
}

}  // namespace verbatim::generic
