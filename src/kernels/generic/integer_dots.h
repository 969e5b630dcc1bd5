#pragma once

#include "kernels/generic/shared_exponents.h"
#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// The distance, in bytes, at which weights are prefetched before their use.
inline constexpr int64_t kCodePrefetchBytes = 2048;
inline constexpr int64_t kScalePrefetchBytes = 128;

/// The bytes of a tile's codes.
inline constexpr int64_t integer_code_bytes(int kind) {
  return kind == kIntegerInt8 ? 512 : 256;
}

/// Whether a Dot multiplies words of sixteen bits, of codes and of activations, where a row has both bytes of
/// its activations. Such a Dot has
///   even_words(codes), odd_words(codes): the bytes 0 and 2, and the bytes 1 and 3, of each quad as words
///   add_words(sum, words, pair): sum + the products with a pair of activations
template <typename Dot>
concept MultipliesWords = requires {
  Dot::kMultipliesWords;
};

/// Adds the products of a register of words with a pair of activations of each of kRows rows, which is at
/// a[r] + at, to `sums`. Rows are counted by templates so that their sums stay in registers: the compiler
/// keeps an array in memory whose elements a loop chooses.
template <typename Dot, int kRows, int kRow = 0, typename Words>
VERBATIM_INLINE void add_words_of_rows(const Words& words, const int16_t* const (&a)[kRows], int64_t at,
                                       typename Dot::Sum (&sums)[kRows]) {
  sums[kRow] = Dot::add_words(sums[kRow], words, a[kRow] + at);
  if constexpr (kRow + 1 < kRows) add_words_of_rows<Dot, kRows, kRow + 1>(words, a, at, sums);
}

/// The dot products of int8 activations and integer weights, without their scales. `Dot` is the instruction
/// set's part:
///   Dot::Bytes: 64 weights; load(); of 64 bytes of codes: e2m1_low/high(), bsfp_low/high(),
///   low/high_nibbles()
///   Dot::Sum: 16 integer sums; open(sum) makes a Partial that takes add()s of as many quads as fit, close()
///   ends it; BSFP's weights want a partial for every quad, and so do those that need all eight bits, with
///   add_int8() start(value), subtract_product(sum, bytes, value), to_float(sum) add_shifted(sum, shifted,
///   shifts): sum + (shifted << shifts, or nothing where that is 32 or more)
///
/// Where kWholeBytes, a Partial is a Sum, open() and close() do nothing, and shift_bytes(bytes, shifts) has
/// the four bytes of each column shifted left by its bits, or zeros where these are 32 or more; the bytes
/// stay below 256. Where kE2m1Offset is above zero too, negative_offsets(first, second) has for each column
/// the pair -(kE2m1Offset << first), -(kE2m1Offset << second) of 16-bit words, with zeros where they are
/// shifted by 32 or more, and add_words(sum, words, pair) adds the dot product of each column's words and the
/// pair at an address.
template <typename Dot, int kKind>
struct IntegerDots {
  static constexpr int64_t kBytes = integer_code_bytes(kKind);

  template <typename Packed>
  VERBATIM_INLINE static auto low_weights(const Packed& packed) {
    if constexpr (kKind == kIntegerMxfp4) {
      return Dot::e2m1_low(packed);
    } else if constexpr (kKind == kIntegerBsfp) {
      return Dot::bsfp_low(packed);
    } else {
      return Dot::low_nibbles(packed);
    }
  }
  template <typename Packed>
  VERBATIM_INLINE static auto high_weights(const Packed& packed) {
    if constexpr (kKind == kIntegerMxfp4) {
      return Dot::e2m1_high(packed);
    } else if constexpr (kKind == kIntegerBsfp) {
      return Dot::bsfp_high(packed);
    } else {
      return Dot::high_nibbles(packed);
    }
  }

  /// Prefetches weights of all panels in turn while one of them is multiplied, because a long burst for one
  /// panel would make the others wait.
  struct Fetch {
    const uint8_t* from;  ///< the bytes of the first panel to fetch
    int64_t apart;        ///< bytes between panels
    int panels;

    VERBATIM_INLINE Fetch tile(int64_t index) const {
      return {from + index * kBytes / panels, apart, panels};
    }
    /// Prefetches one cache line; called once for each of a tile's four blocks.
    VERBATIM_INLINE void line(int block) const {
      __builtin_prefetch(from + block % panels * apart + block / panels * 64);
    }
  };

  /// Whether the weights of a level are shifted before they are multiplied, rather than their products after
  /// that. They are at most 24 then, and 192 shifted by SharedExponents::kStep: still a byte, which a dot
  /// product takes where it takes whole bytes.
  static constexpr bool kShiftsWeights = kKind == kIntegerMxfp4 && Dot::kWholeBytes && Dot::kE2m1Offset > 0;
  static_assert(24 << SharedExponents::kStep < 256);

  /// The number of a tile's four blocks of codes whose products fit into one partial sum of sixteen bits,
  /// each lane of which takes four products of every block. Activations are at most 127, codes 15 and weights
  /// of E2M1 24. The weights of BSFP are up to 128, so that a partial sum takes one quad, 0 blocks.
  static constexpr int kBlocksOfPartial = kKind == kIntegerMxfp4 ? 2 : kKind == kIntegerBsfp ? 0 : 4;
  static_assert(4 * kBlocksOfPartial * 127 * (kKind == kIntegerMxfp4 ? 24 : 15) < 32768);
  static_assert(2 * 127 * 128 < 32768);
  /// Whether a partial sum takes one quad.
  static constexpr bool kQuadByQuad = kBlocksOfPartial == 0 && !Dot::kWholeBytes;

  /// The place of `count` tiles whose products are scaled together.
  struct Place {
    int64_t row;
    int64_t tile;
    int64_t count;
    const uint8_t* codes;
    const uint8_t* scales;
    const uint8_t* zeros;
    Fetch fetch;
  };

  /// Adds the products of rows with kBlocks of the four blocks of a tile, from `first` on, in each of
  /// kTogether panels to `sums`: an activation that was loaded and spread meets all panels. With kShifted the
  /// weights of panel j are shifted by the bits of shifts[j].
  template <int kRows, int kBlocks, bool kShifted, int kTogether, typename Partial>
  VERBATIM_INLINE static void add_blocks(const uint8_t* const (&codes)[kTogether],
                                         const Fetch (&fetch)[kTogether], int first, const int8_t* a,
                                         int64_t a_stride, Partial (&sums)[kTogether * kRows],
                                         [[maybe_unused]] const typename Dot::Sum (&shifts)[kTogether]) {
    const auto add_block = [&](int block) __attribute__((always_inline)) {
      typename Dot::Bytes low[kTogether];
      typename Dot::Bytes high[kTogether];
      for (int j = 0; j < kTogether; ++j) {
        fetch[j].line(block);
        const auto packed = Dot::load(codes[j] + block * 64);
        low[j] = low_weights(packed);
        high[j] = high_weights(packed);
        if constexpr (kShifted) {
          low[j] = Dot::shift_bytes(low[j], shifts[j]);
          high[j] = Dot::shift_bytes(high[j], shifts[j]);
        }
      }
      const auto add = [&](int r, const auto& weights, int64_t input) __attribute__((always_inline)) {
        const int8_t* const quad = a + r * a_stride + input;
        for (int j = 0; j < kTogether; ++j) {
          auto& sum = sums[j * kRows + r];
          if constexpr (kQuadByQuad) {
            sum = Dot::close(sum, Dot::add(Dot::open(sum), weights[j], quad));
          } else {
            sum = Dot::add(sum, weights[j], quad);
          }
        }
      };
      if constexpr (Dot::kWholeBytes) {  // all rows in turn, so that no sum waits for its last dot product
        for (int r = 0; r < kRows; ++r) add(r, low, block * 8);
        for (int r = 0; r < kRows; ++r) add(r, high, block * 8 + 4);
      } else {
        for (int r = 0; r < kRows; ++r) {
          add(r, low, block * 8);
          add(r, high, block * 8 + 4);
        }
      }
    };
    // Blocks are written out, not looped over: compilers keep more of the sums in registers so.
    add_block(first);
    add_block(first + 1);
    if constexpr (kBlocks == 4) {
      add_block(first + 2);
      add_block(first + 3);
    }
  }

  /// Multiplies rows with the tile `index` behind each of kTogether places, which are in panels of their own.
  template <int kRows, bool kShifted = false, int kTogether>
  VERBATIM_INLINE static void dot_nibbles(const Place (&at)[kTogether], int64_t index, const int8_t* a,
                                          int64_t a_stride, typename Dot::Sum (&dots)[kTogether * kRows],
                                          const typename Dot::Sum (&shifts)[kTogether] = {}) {
    const uint8_t* codes[kTogether];
    Fetch fetch[kTogether];
    for (int j = 0; j < kTogether; ++j) {
      codes[j] = at[j].codes + index * kBytes;
      fetch[j] = at[j].fetch.tile(index);
    }
    if constexpr (Dot::kWholeBytes || kQuadByQuad) {
      add_blocks<kRows, 4, kShifted>(codes, fetch, 0, a, a_stride, dots, shifts);
    } else {
      const auto add_partial = [&](int first) __attribute__((always_inline)) {
        typename Dot::Partial partial[kTogether * kRows];
        for (int i = 0; i < kTogether * kRows; ++i) partial[i] = Dot::open(dots[i]);
        add_blocks<kRows, kBlocksOfPartial, kShifted>(codes, fetch, first, a, a_stride, partial, shifts);
        for (int i = 0; i < kTogether * kRows; ++i) dots[i] = Dot::close(dots[i], partial[i]);
      };
      add_partial(0);
      if constexpr (kBlocksOfPartial == 2) add_partial(2);
    }
  }

  template <int kRows, int kTogether>
  VERBATIM_INLINE static void dot_bytes(const Place (&at)[kTogether], const int8_t* a, int64_t a_stride,
                                        typename Dot::Sum (&dots)[kTogether * kRows]) {
    for (int quad = 0; quad < 8; ++quad) {
      typename Dot::Bytes weights[kTogether];
      for (int j = 0; j < kTogether; ++j) {
        __builtin_prefetch(at[j].codes + kCodePrefetchBytes + quad * 64);
        weights[j] = Dot::int8(at[j].codes + quad * 64);
      }
      for (int r = 0; r < kRows; ++r) {
        for (int j = 0; j < kTogether; ++j) {
          dots[j * kRows + r] = Dot::close(
              dots[j * kRows + r],
              Dot::add_int8(Dot::open(dots[j * kRows + r]), weights[j], a + r * a_stride + quad * 4));
        }
      }
    }
  }
};

}  // namespace verbatim::generic
