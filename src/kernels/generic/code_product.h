#pragma once

#include "kernels/generic/code_bytes.h"
#include "kernels/generic/code_words.h"
#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// The loops over rows and panels of a product with codes. `Micro`, CodeBytes or CodeWords, multiplies.
template <typename Micro, int kStorage, typename Dot>
struct CodeLoops {
  using Product = typename Micro::Product;

  /// Multiplies kRows rows, from `row` on, with kPanels panels, of which the first is `panel` and each of
  /// the others `apart` panels further on.
  template <int kRows, int kPanels>
  static void block(const Product& p, int64_t row, int64_t panel, int64_t apart) {
    typename Dot::Sum sums[kPanels][kRows * Micro::kSumsOfRow];
    for (auto& of_panel : sums) {
      for (auto& sum : of_panel) sum = Dot::start(0);
    }
    const int64_t panel_bytes = p.k / kCodeTileInner * code_tile_bytes(kStorage);
    const int64_t first = apart == 0 ? panel : panel * kPanels;  // in the order of reading
    for (int64_t step = 0; step < p.k / Micro::kStepInputs; ++step) {
      if (row == 0) {
        constexpr int64_t kBytes = kPanels * Micro::kStepInputs * code_tile_bytes(kStorage) / kCodeTileInner;
        const int64_t at = first * panel_bytes + step * kBytes;
        p.ahead.fetch_with(at, kBytes);
        if constexpr (kStorage == kCodesBoth) p.ahead_lower.fetch_with(at, kBytes);
      }
      const auto add = [&]<int kPanel>() __attribute__((always_inline)) {
        const int64_t offset = (panel + kPanel * apart) * panel_bytes;
        const uint8_t* const lower = kStorage == kCodesBoth ? p.lower + offset : nullptr;
        Micro::add_step(p, row, step, p.codes + offset, lower, sums[kPanel]);
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

  /// Multiplies the rows from `row` on with the panels `panel`, `panel` + apart, ..., kRows at a time, and
  /// the rest fewer at a time.
  template <int kRows, int kPanels>
  static void all_rows(const Product& p, int64_t row, int64_t panel, int64_t apart) {
    for (; row + kRows <= p.rows; row += kRows) block<kRows, kPanels>(p, row, panel, apart);
    if constexpr (kRows > 1) all_rows<kRows - 1, kPanels>(p, row, panel, apart);
  }

  /// Multiplies all rows, kRows at a time, with all panels, of which kPanels are read side by side.
  template <int kRows, int kPanels>
  static void all_panels(const Product& p) {
    const int64_t share = p.panel_count / kPanels;
    for (int64_t panel = 0; panel < share; ++panel) all_rows<kRows, kPanels>(p, 0, panel, share);
    for (int64_t panel = share * kPanels; panel < p.panel_count; ++panel) {
      all_rows<kRows, 1>(p, 0, panel, 0);
    }
  }

  static void product(const Product& p) {
    // More rows have sums enough in one panel for none to wait for its last product.
    constexpr int kFewRows = Micro::kMostRows >= 8 ? 2 : 1;
    if (p.rows <= kFewRows) return all_panels<kFewRows, Dot::kCodeStreams>(p);
    all_panels<Micro::kMostRows, 1>(p);
  }
};

/// A product with the codes of quantized keys or values. `Dot` is the instruction set's part, as in
/// integer.h, with these additions:
///   kCodeSums                       the most sums that stay in registers
///   kCodeStreams                    the number of panels that one row is multiplied with side by side
///   kWholeBytes                     whether add() takes weights up to 255, or nibbles alone
///   merge(upper, lower, &b0, &b1)   if so: the codes of two quads from two planes of nibbles
///   kMultipliesWords                if there: whether words of sixteen bits are multiplied instead (see
///                                   HalvesMicro)
///   add_shifted<bits>(sum, shifted), store(sum, out)
template <typename Dot, int kStorage>
void code_product(const CodeProduct& p) {
  if constexpr (requires { Dot::kMultipliesWords; }) {
    constexpr int64_t kRows = 2 * Dot::kCodeSums;  // so many that the space on the stack is small
    int16_t words[kRows * kMostScaledNumbers];
    CodeWordsProduct part{p, words};
    for (int64_t row = 0; row < p.rows; row += kRows) {
      part.rows = p.rows - row < kRows ? p.rows - row : kRows;
      join_bytes(p.a + row * 2 * p.k, part.rows, p.k, words);
      part.c = p.c + row * p.c_stride;
      CodeLoops<CodeWords<Dot, kStorage>, kStorage, Dot>::product(part);
      part.ahead = part.ahead_lower = {};  // fetched
    }
  } else {
    CodeLoops<CodeBytes<Dot, kStorage>, kStorage, Dot>::product(p);
  }
}

template <typename Dot>
void fill_code_product(decltype(KernelTable::code_product)& table) {
  table[kCodesUpper] = code_product<Dot, kCodesUpper>;
  table[kCodesBoth] = code_product<Dot, kCodesBoth>;
  table[kCodesBytes] = code_product<Dot, kCodesBytes>;
}

}  // namespace verbatim::generic
