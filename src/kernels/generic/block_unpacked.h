#pragma once

#include "kernels/generic/block_codes.h"
#include "kernels/generic/unpacked_words.h"

namespace verbatim::generic {

/// The product of many rows with blocks of one shape: the scales of groups are multiplied into the weights
/// when a block is unpacked, so that a row's products of a block are sums of one, in integers.
template <typename V, typename Dot, BlockShape kShape>
struct BlockUnpacked {
  using Codes = BlockCodes<Dot, kShape>;
  using Sum = typename Dot::Sum;
  static constexpr BlockLayout kLayout = block_layout(kShape);
  static constexpr int kTiles = kBlockInputs / kInnerStep;
  static constexpr int kMostRows = kUnpackedRowsAtOnce<V>;

  /// The largest magnitude of a weight: of the product of a code and a scale, which has any eight bits where
  /// it has a sign.
  static constexpr int64_t kLargestWeight = kLayout.offsets
                                                ? kLayout.scale_bits() * ((1 << kLayout.bits()) - 1)
                                                : 128 * (1 << (kLayout.bits() - 1));
  static_assert(kLargestWeight < 1 << 15);
  /// The number of inputs whose products add up to less than 2^31.
  static constexpr int inputs_of_sum() {
    int inputs = kBlockInputs;
    while (inputs * kLargestWeight * kLargestRowCode >= int64_t{1} << 31) inputs /= 2;
    return inputs;
  }
  static constexpr int kInputsOfSum = inputs_of_sum();
  static_assert(kInputsOfSum >= 16 && (kLayout.offsets || 2 * kLayout.bias == 1 << kLayout.bits()));

  /// Whether the rows of a product have words, and are so many that it is faster this way: fewer where sums
  /// are long, so that their groups, each with a scale, cost nothing any more.
  static bool pays(const BlockProduct& p) {
    constexpr int64_t kLeastRows = MultipliesWords<Dot> && kInputsOfSum >= 128 ? 6 : kUnpackedRows;
    static_assert(kLeastRows >= kMostRows / 2);  // for_unpacked_rows()
    return p.row_count >= kLeastRows && p.rows[0].words != nullptr;
  }

  /// A block as its rows meet it.
  struct Block {
    UnpackedWords weights;
    alignas(64) float offsets[kLayout.offsets ? kLayout.groups() : 1][kPanelWidth];
    alignas(64) float scales[kPanelWidth];
  };

  template <int kQuad>
  VERBATIM_INLINE static void unpack_quads(const uint8_t* tile, int64_t first,
                                           const typename Dot::Bytes& scales, UnpackedWords& to) {
    to.set_quad<Dot, kLayout.bias>(first + kQuad, Codes::template codes<kQuad>(tile), scales);
    if constexpr ((kQuad + 1) % Codes::kQuads != 0) unpack_quads<kQuad + 1>(tile, first, scales, to);
  }

  /// Unpacks the block at `from`, and asks for the one at `next`.
  static void unpack(const uint8_t* from, const uint8_t* next, Block& to) {
    for (int64_t line = 0; line < kLayout.bytes(); line += 64) __builtin_prefetch(next + line);
    for (int t = 0; t < kTiles; ++t) {
      const uint8_t* const tile = from + kLayout.tiles_at() + t * kLayout.tile_bytes();
      const int64_t quad = t * kInnerStep / 4;
      const int group = t * Codes::kGroupsOfTile;
      unpack_quads<0>(tile, quad, Dot::in_words(Codes::scales(from, group)), to.weights);
      if constexpr (Codes::kGroupsOfTile > 1) {
        const auto scales = Dot::in_words(Codes::scales(from, group + 1));
        unpack_quads<Codes::kQuads>(tile, quad, scales, to.weights);
      }
    }
    const Float16* const scales = reinterpret_cast<const Float16*>(from);
    V::load(scales).store(to.scales);
    if constexpr (kLayout.offsets) {
      const V scale = V::load(scales + kPanelWidth);
      for (int group = 0; group < kLayout.groups(); ++group) {
        const auto offsets = Dot::unsigned_bytes(from + kLayout.offsets_at() + group * kPanelWidth);
        (Dot::to_float(offsets) * scale).store(to.offsets[group]);
      }
    }
  }

  template <int kRows, int kRow = 0>
  VERBATIM_INLINE static void add_parts(const Sum (&dots)[kRows], PartsOfSum<Dot> (&totals)[kRows]) {
    totals[kRow].add(dots[kRow]);
    if constexpr (kRow + 1 < kRows) add_parts<kRows, kRow + 1>(dots, totals);
  }

  /// The products of a block with the rows at `a`, without the block's scale and the rows' steps.
  template <int kRows>
  VERBATIM_INLINE static void dot(const Block& block, const int16_t* const (&a)[kRows], V (&values)[kRows]) {
    Sum dots[kRows];
    if constexpr (kInputsOfSum == kBlockInputs) {
      start_sums<Dot>(dots);
      add_unpacked<Dot, kBlockInputs>(block.weights, 0, a, dots);
      for (int r = 0; r < kRows; ++r) values[r] = value_of_block<V, Dot>(Dot::start(0), dots[r]);
    } else {
      PartsOfSum<Dot> totals[kRows];
      for (auto& total : totals) total.start();
      for (int64_t first = 0; first < kBlockInputs; first += kInputsOfSum) {
        start_sums<Dot>(dots);
        add_unpacked<Dot, kInputsOfSum>(block.weights, first, a, dots);
        add_parts<kRows>(dots, totals);
      }
      for (int r = 0; r < kRows; ++r) values[r] = totals[r].template value<V>();
    }
  }

  /// Adds the products of the block `index` of a panel with kRows rows to the results at `c`.
  template <int kRows>
  [[gnu::noinline]] static void multiply(const Block& block, const TwoByteRow* rows, int64_t index, float* c,
                                         int64_t c_stride) {
    const int16_t* a[kRows];
    for (int r = 0; r < kRows; ++r) a[r] = rows[r].words + index * kBlockInputs;
    V values[kRows];
    dot<kRows>(block, a, values);
    V sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = index == 0 ? V::set(0.0f) : V::load(c + r * c_stride);
    if constexpr (kLayout.offsets) {
      const float* group_sums[kRows];
      for (int r = 0; r < kRows; ++r) {
        group_sums[r] = (kLayout.group == 16 ? rows[r].of_16 : rows[r].of_32) + index * kLayout.groups();
      }
      for (int group = 0; group < kLayout.groups(); ++group) {
        const V offset = V::load(block.offsets[group]);
        for (int r = 0; r < kRows; ++r) sums[r] = fma(offset, V::set(group_sums[r][group]), sums[r]);
      }
    }
    const V scale = V::load(block.scales);
    for (int r = 0; r < kRows; ++r) {
      // The product of the scale and the step alone may be subnormal, and slow; hence this order.
      fma(values[r] * scale, V::set(rows[r].steps[index]), sums[r]).store(c + r * c_stride);
    }
  }

  static void product(const BlockProduct& p) {
    const int64_t panel_bytes = p.blocks * kLayout.bytes();
    Block unpacked;
    for_equal_shares(p.row_count, kUnpackedRowsTogether, [&](int64_t first, int64_t count) {
      for (int64_t index = 0; index < p.blocks; ++index) {
        const uint8_t* const blocks = p.panels + index * kLayout.bytes();
        for (int64_t panel = 0; panel < p.panel_count; ++panel) {
          const uint8_t* const block = blocks + panel * panel_bytes;
          const uint8_t* const next_of_first = index + 1 < p.blocks ? blocks + kLayout.bytes() : p.panels;
          unpack(block, panel + 1 < p.panel_count ? block + panel_bytes : next_of_first, unpacked);
          float* const c = p.c + first * p.c_stride + panel * kPanelWidth;
          for_unpacked_rows<kMostRows>(
              count, [&]<int kRows>(int64_t row) __attribute__((always_inline)) {
                multiply<kRows>(unpacked, p.rows + first + row, index, c + row * p.c_stride, p.c_stride);
              });
        }
      }
    });
  }
};

}  // namespace verbatim::generic
