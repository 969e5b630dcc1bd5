#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// The numbers of a row as words of sixteen bits.
struct WordRow {
  int16_t even[kMostScaledNumbers / 2];  ///< the numbers with even indices
  int16_t odd[kMostScaledNumbers / 2];   ///< the numbers with odd indices
};

/// The operands of a product whose rows are words.
struct WordRowsProduct : CodeProduct {
  const WordRow* words;  ///< as many as there are rows
};

/// Joins the bytes of rows, [rows][2][k], to words.
VERBATIM_INLINE void join_bytes(const int8_t* a, int64_t rows, int64_t k, WordRow* words) {
  for (int64_t r = 0; r < rows; ++r) {
    const int8_t* const upper = a + r * 2 * k;
    const int8_t* const lower = upper + k;
    for (int64_t i = 0; i < k / 2; ++i) {
      words[r].even[i] = static_cast<int16_t>(256 * upper[2 * i] + lower[2 * i]);
      words[r].odd[i] = static_cast<int16_t>(256 * upper[2 * i + 1] + lower[2 * i + 1]);
    }
  }
}

/// Products of codes of quantized keys or values with rows as words of sixteen bits. Where dot products of
/// bytes add up in sixteen bits and take nibbles alone, codes of eight bits and rows of two bytes would take
/// four products, and nibbles alone two. `Dot` is the instruction set's part of code_product().
template <typename Dot, int kStorage>
struct WordRows {
  using Bytes = typename Dot::Bytes;
  using Sum = typename Dot::Sum;
  using Product = WordRowsProduct;

  /// The number of sums that a row has in a panel.
  static constexpr int kSumsOfRow = 1;

  /// Loads quad 2 `block` + kQuad of a panel as bytes.
  template <int kQuad>
  VERBATIM_INLINE static Bytes load(const uint8_t* codes, [[maybe_unused]] const uint8_t* lower,
                                    int64_t block) {
    if constexpr (kStorage == kCodesBytes) {
      return Dot::load(codes + block * 128 + kQuad * 64);
    } else if constexpr (kStorage == kCodesUpper) {
      return Dot::template bits<kQuad * 4, 4, 0>(Dot::load(codes + block * 64));
    } else {
      return Dot::join(Dot::template bits<kQuad * 4, 4, 4>(Dot::load(codes + block * 64)),
                       Dot::template bits<kQuad * 4, 4, 0>(Dot::load(lower + block * 64)));
    }
  }

  /// Adds the products of two codes of each column with the pair of words at `pair` of the first row and at
  /// the same place of the others. Rows are counted by templates so that their sums stay in registers.
  template <int kRows, int kRow = 0>
  VERBATIM_INLINE static void add_pairs(const Bytes& codes, const int16_t* pair, Sum (&sums)[kRows]) {
    constexpr int64_t kApart = sizeof(WordRow) / sizeof(int16_t);
    sums[kRow] = Dot::add_words(sums[kRow], codes, pair + kRow * kApart);
    if constexpr (kRow + 1 < kRows) add_pairs<kRows, kRow + 1>(codes, pair, sums);
  }

  /// Adds the products of the inputs 8 `block` .. 8 `block` + 7 of a panel, whose codes begin at `codes` and
  /// `lower`, with the rows from `row` on.
  template <int kRows>
  VERBATIM_INLINE static void add_block(const WordRowsProduct& p, int64_t row, int64_t block,
                                        const uint8_t* codes, const uint8_t* lower, Sum (&sums)[kRows]) {
    const WordRow& words = p.words[row];
    const auto add_quad = [&]<int kQuad>() __attribute__((always_inline)) {
      const Bytes quad = load<kQuad>(codes, lower, block);
      const int64_t at = block * 4 + kQuad * 2;
      add_pairs(Dot::even_words(quad), words.even + at, sums);
      add_pairs(Dot::odd_words(quad), words.odd + at, sums);
    };
    add_quad.template operator()<0>();
    add_quad.template operator()<1>();
  }

  /// The product of a row, from its sum.
  VERBATIM_INLINE static Sum total(const Sum* sums) { return *sums; }
};

}  // namespace verbatim::generic
