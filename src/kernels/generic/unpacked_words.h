#pragma once

#include "kernels/generic/equal_shares.h"
#include "kernels/generic/integer_dots.h"

namespace verbatim::generic {

// Products of many rows of activations in two bytes with codes that are unpacked to words of sixteen bits
// first, a block of 256 inputs of a panel at a time, and stay in the first-level cache while up to 128 rows
// meet them. What a weight costs beside its product, it costs once for these rows.

/// Whether a Dot multiplies words of weights that were unpacked to memory. Such a Dot has even_words(),
/// odd_words() and add_words(), as one that MultipliesWords has them, and
///   in_words(scales): sixteen integers, each in both words of its column
///   weights<bias>(words), weights<bias>(words, scales): word - bias, and (word - bias) · scale, word by word
///   store_words(words, to): writes 32 words to aligned memory
template <typename Dot>
concept UnpacksWords = requires(typename Dot::Sum scales) {
  Dot::in_words(scales);
};

/// The least number of rows for which unpacking a block to memory pays.
inline constexpr int64_t kUnpackedRows = 16;

/// The least number of rows that are taken as words, where they have both bytes.
template <typename Dot>
constexpr int64_t least_rows_in_words() {
  if constexpr (MultipliesWords<Dot>) {
    return 1;
  } else if constexpr (UnpacksWords<Dot>) {
    return kUnpackedRows;
  } else {
    return kNeverInWords;
  }
}

/// Weights of a block: for each quad of codes 32 words of its bytes 0 and 2, then 32 of its bytes 1 and 3,
/// the order in which TwoByteRow::words has activations.
struct UnpackedWords {
  alignas(64) int16_t words[kBlockInputs * kPanelWidth];

  static constexpr int64_t kWordsOfPair = 2 * kPanelWidth;

  /// Unpacks a quad of codes: code - kBias, or (code - kBias) · scale.
  template <typename Dot, int kBias, typename... Scales>
  VERBATIM_INLINE void set_quad(int64_t quad, const typename Dot::Bytes& codes, const Scales&... scales) {
    int16_t* const to = words + quad * 2 * kWordsOfPair;
    Dot::store_words(Dot::template weights<kBias>(Dot::even_words(codes), scales...), to);
    Dot::store_words(Dot::template weights<kBias>(Dot::odd_words(codes), scales...), to + kWordsOfPair);
  }
};

/// The most rows at a time: eight where there are many registers, or else as many as have registers for their
/// sums beside two of weights and one of activations.
template <typename V>
inline constexpr int kUnpackedRowsAtOnce = V::kSums > 4 ? 8 : 6;

/// Begins the sums of kRows rows at zero.
template <typename Dot, int kRows, int kRow = 0>
VERBATIM_INLINE void start_sums(typename Dot::Sum (&sums)[kRows]) {
  sums[kRow] = Dot::start(0);
  if constexpr (kRow + 1 < kRows) start_sums<Dot, kRows, kRow + 1>(sums);
}

/// Adds the products of kInputs inputs of a block, from `first` on, with kRows rows, whose words for the
/// block's first input are at `a`, to `sums`.
template <typename Dot, int kInputs, int kRows>
VERBATIM_INLINE void add_unpacked(const UnpackedWords& weights, int64_t first,
                                  const int16_t* const (&a)[kRows], typename Dot::Sum (&sums)[kRows]) {
#pragma GCC unroll 1
  for (int64_t input = first; input < first + kInputs; input += 4) {
    const auto* const from =
        reinterpret_cast<const uint8_t*>(weights.words + input / 2 * UnpackedWords::kWordsOfPair);
    add_words_of_rows<Dot, kRows>(Dot::load(from), a, input, sums);
    add_words_of_rows<Dot, kRows>(Dot::load(from + 64), a, input + 2, sums);
  }
}

/// The most rows that meet a block together: their activations stay in the second-level cache while several
/// panels meet them.
inline constexpr int64_t kUnpackedRowsTogether = 128;

/// Calls multiply.template operator()<kRows>(row) for equal shares of `rows` rows, kMostRows at most and half
/// as many at the least, as `rows` must be.
template <int kMostRows, typename Multiply>
VERBATIM_INLINE void for_unpacked_rows(int64_t rows, const Multiply& multiply) {
  constexpr int kFewestRows = kMostRows / 2;
  const auto some = [&]<int kRows>(const auto& self, int64_t row, int64_t count)
      __attribute__((always_inline)) {
    if constexpr (kRows > kFewestRows) {
      if (count < kRows) return self.template operator()<kRows - 1>(self, row, count);
    }
    multiply.template operator()<kRows>(row);
  };
  for_equal_shares(
      rows, kMostRows, [&](int64_t row, int64_t count) __attribute__((always_inline)) {
        some.template operator()<kMostRows>(some, row, count);
      });
}

}  // namespace verbatim::generic
