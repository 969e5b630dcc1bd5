#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// The operands of a product whose rows are words of sixteen bits.
struct CodeWordsProduct : CodeProduct {
  const int16_t* words;  ///< [rows][2][k / 2]: the numbers with even, then the numbers with odd indices
};

/// Joins the bytes of rows to words: see CodeWordsProduct::words.
VERBATIM_INLINE void join_bytes(const int8_t* a, int64_t rows, int64_t k, int16_t* words) {
  for (int64_t r = 0; r < rows; ++r) {
    const int8_t* const upper = a + r * 2 * k;
    const int8_t* const lower = upper + k;
    int16_t* const even = words + r * k;
    int16_t* const odd = even + k / 2;
    for (int64_t i = 0; i < k / 2; ++i) {
      even[i] = static_cast<int16_t>(256 * upper[2 * i] + lower[2 * i]);
      odd[i] = static_cast<int16_t>(256 * upper[2 * i + 1] + lower[2 * i + 1]);
    }
  }
}

/// The product of codes of quantized keys or values with rows as words of sixteen bits. Where dot products of
/// bytes add up in sixteen bits and take nibbles alone, codes of eight bits and rows of two bytes would be
/// four products. `Dot` is the instruction set's part of code_product().
template <typename Dot, int kStorage>
struct CodeWords {
  using Bytes = typename Dot::Bytes;
  using Sum = typename Dot::Sum;
  using Product = CodeWordsProduct;

  static constexpr int kSumsOfRow = 1;
  static constexpr int kMostRows = Dot::kCodeSums;
  static constexpr int64_t kStepInputs = 16;

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

  // Rows are counted by templates: see CodeBytes.

  /// Adds the products of two codes of each column with a pair of words of each row.
  template <int kRows, int kRow = 0>
  VERBATIM_INLINE static void add_pairs(const Bytes& codes, const int16_t* pairs, int64_t k,
                                        Sum (&sums)[kRows]) {
    sums[kRow] = Dot::add_words(sums[kRow], codes, pairs + kRow * k);
    if constexpr (kRow + 1 < kRows) add_pairs<kRows, kRow + 1>(codes, pairs, k, sums);
  }
  template <int kQuad, int kRows>
  VERBATIM_INLINE static void add_quad(const Bytes& codes, const int16_t* words, int64_t k,
                                       Sum (&sums)[kRows]) {
    add_pairs<kRows>(Dot::even_words(codes), words + kQuad * 2, k, sums);
    add_pairs<kRows>(Dot::odd_words(codes), words + kQuad * 2 + k / 2, k, sums);
  }

  /// Adds the products of step `step` of a panel, whose codes begin at `codes` and `lower`.
  template <int kRows>
  VERBATIM_INLINE static void add_step(const CodeWordsProduct& p, int64_t row, int64_t step,
                                       const uint8_t* codes, const uint8_t* lower, Sum (&sums)[kRows]) {
    for (int64_t block = 2 * step; block < 2 * step + 2; ++block) {
      const int16_t* const words = p.words + row * p.k + block * 4;
      add_quad<0>(load<0>(codes, lower, block), words, p.k, sums);
      add_quad<1>(load<1>(codes, lower, block), words, p.k, sums);
    }
  }

  VERBATIM_INLINE static Sum total(const Sum* sums) { return sums[0]; }
};

}  // namespace verbatim::generic
