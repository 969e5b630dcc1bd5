#pragma once

#include "kernels/generic/code_byte_rows.h"
#include "kernels/generic/code_word_rows.h"
#include "kernels/generic/equal_shares.h"
#include "kernels/generic/integer_dots.h"
#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// The loops over rows and panels of a product with codes. `Rows`, ByteRows or WordRows, multiplies.
template <template <typename, int> typename Rows, typename Dot, int kStorage>
struct CodeLoops {
  using Micro = Rows<Dot, kStorage>;
  using Product = typename Micro::Product;
  static constexpr int64_t kTileBytes = code_tile_bytes(kStorage);
  /// The most rows whose sums stay in registers.
  static constexpr int kMostRows = Dot::kCodeSums / Micro::kSumsOfRow;
  /// The most rows for which panels are multiplied side by side, because the few sums of one panel would
  /// each wait for the product before. More rows have sums enough in one panel.
  static constexpr int kFewRows = kMostRows >= 8 ? 2 : 1;
  static_assert(kMostRows >= kFewRows && Dot::kCodeStreams <= 4);

  /// Multiplies kRows rows, from `row` on, with kPanels panels, of which the first is `panel` and each of
  /// the others `apart` panels further on.
  template <int kRows, int kPanels>
  static void block(const Product& p, int64_t row, int64_t panel, int64_t apart) {
    typename Dot::Sum sums[kPanels][kRows * Micro::kSumsOfRow];
    for (auto& of_panel : sums) {
      for (auto& sum : of_panel) sum = Dot::start(0);
    }
    const int64_t panel_bytes = p.k / kCodeTileInner * kTileBytes;
    // The place of these panels in the order in which all are read.
    const int64_t first = apart == 0 ? panel : panel * kPanels;
    constexpr int64_t kInputs = 16;  // for which memory is asked ahead at once
    for (int64_t step = 0; step < p.k / kInputs; ++step) {
      if (row == 0) {
        constexpr int64_t kBytes = kPanels * kInputs * kTileBytes / kCodeTileInner;
        const int64_t at = first * panel_bytes + step * kBytes;
        p.ahead.fetch_with(at, kBytes);
        if constexpr (kStorage == kCodesBoth) p.ahead_lower.fetch_with(at, kBytes);
      }
      const auto add = [&]<int kPanel>() __attribute__((always_inline)) {
        const int64_t offset = (panel + kPanel * apart) * panel_bytes;
        const uint8_t* const lower = kStorage == kCodesBoth ? p.lower + offset : nullptr;
        Micro::add_block(p, row, 2 * step, p.codes + offset, lower, sums[kPanel]);
        Micro::add_block(p, row, 2 * step + 1, p.codes + offset, lower, sums[kPanel]);
      };
      add.template operator()<0>();
      if constexpr (kPanels > 1) add.template operator()<1>();
      if constexpr (kPanels > 2) add.template operator()<2>();
      if constexpr (kPanels > 3) add.template operator()<3>();
    }
    for (int j = 0; j < kPanels; ++j) {
      int32_t* const c = p.c + row * p.c_stride + (panel + j * apart) * kPanelWidth;
      for (int r = 0; r < kRows; ++r) {
        Dot::store(Micro::total(sums[j] + r * Micro::kSumsOfRow), c + r * p.c_stride);
      }
    }
  }

  /// Multiplies `count` rows, kRows at most, from `row` on.
  template <int kRows, int kPanels>
  static void some_rows(const Product& p, int64_t count, int64_t row, int64_t panel, int64_t apart) {
    if constexpr (kRows > 1) {
      if (count < kRows) return some_rows<kRows - 1, kPanels>(p, count, row, panel, apart);
    }
    block<kRows, kPanels>(p, row, panel, apart);
  }

  /// Multiplies all rows with the panels `panel`, `panel` + apart, ..., in equal blocks of kRows rows at
  /// most.
  template <int kRows, int kPanels>
  static void all_rows(const Product& p, int64_t panel, int64_t apart) {
    for_equal_shares(
        p.rows, kRows, [&](int64_t row, int64_t count) __attribute__((always_inline)) {
          some_rows<kRows, kPanels>(p, count, row, panel, apart);
        });
  }

  /// Multiplies all rows, kRows at a time, with all panels, of which kPanels are read side by side.
  template <int kRows, int kPanels>
  static void all_panels(const Product& p) {
    const int64_t share = p.panel_count / kPanels;
    for (int64_t panel = 0; panel < share; ++panel) all_rows<kRows, kPanels>(p, panel, share);
    for (int64_t panel = share * kPanels; panel < p.panel_count; ++panel) all_rows<kRows, 1>(p, panel, 0);
  }

  static void product(const Product& p) {
    if (p.rows <= kFewRows) return all_panels<kFewRows, Dot::kCodeStreams>(p);
    all_panels<kMostRows, 1>(p);
  }
};

/// A product with the codes of quantized keys or values. `Dot` is the instruction set's part, as in
/// integer_dots.h, with these additions:
///   kCodeSums      the most sums that stay in registers
///   kCodeStreams   the number of panels that few rows are multiplied with side by side, up to four
///   add_shifted<bits>(sum, shifted), store(sum, out)
/// Where Dot MultipliesWords, rows are words, and it has bits() and join() (block_codes.h). Elsewhere rows
/// are bytes, and it has
///   kWholeBytes    whether add() takes weights up to 255, or nibbles alone
///   merge(upper, lower, &b0, &b1): if so, the codes of two quads from two planes of nibbles
template <typename Dot, int kStorage>
void code_product(const CodeProduct& p) {
  if constexpr (MultipliesWords<Dot>) {
    constexpr int64_t kRows = 2 * Dot::kCodeSums;  // whole blocks, whose words take at most 16 KiB of stack
    alignas(64) WordRow words[kRows];
    WordRowsProduct part{p, words};
    for (int64_t row = 0; row < p.rows; row += kRows) {
      part.rows = p.rows - row < kRows ? p.rows - row : kRows;
      join_bytes(p.a + row * 2 * p.k, part.rows, p.k, words);
      part.c = p.c + row * p.c_stride;
      CodeLoops<WordRows, Dot, kStorage>::product(part);
      part.ahead = part.ahead_lower = {};  // the first rows have fetched it
    }
  } else {
    CodeLoops<ByteRows, Dot, kStorage>::product(p);
  }
}

template <typename Dot>
void fill_code_product(decltype(KernelTable::code_product)& table) {
  table[kCodesUpper] = code_product<Dot, kCodesUpper>;
  table[kCodesBoth] = code_product<Dot, kCodesBoth>;
  table[kCodesBytes] = code_product<Dot, kCodesBytes>;
}

}  // namespace verbatim::generic
