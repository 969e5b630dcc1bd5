#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// Products of codes of quantized keys or values with rows as bytes, the upper and the lower one of each
/// number. `Dot` is the instruction set's part of code_product(); its Partial is a Sum.
template <typename Dot, int kStorage>
struct ByteRows {
  /// The number of planes that codes are multiplied in. Where dot products take nibbles alone, eight bits are
  /// two planes.
  static constexpr int kPlanes = kStorage != kCodesUpper && !Dot::kWholeBytes ? 2 : 1;
  using Bytes = typename Dot::Bytes;
  using Sum = typename Dot::Sum;
  using Product = CodeProduct;

  /// The number of sums that a row has in a panel.
  static constexpr int kSumsOfRow = 2 * kPlanes;

  /// Loads quads 2 `block` and 2 `block` + 1 of a panel: [plane, the lower one last][quad].
  VERBATIM_INLINE static void load(const uint8_t* codes, const uint8_t* lower, int64_t block,
                                   Bytes (&out)[kPlanes][2]) {
    const auto nibbles = [](const uint8_t* plane, Bytes(&quads)[2]) __attribute__((always_inline)) {
      const auto both = Dot::load(plane);
      quads[0] = Dot::low_nibbles(both);
      quads[1] = Dot::high_nibbles(both);
    };
    if constexpr (kStorage == kCodesBoth && kPlanes == 1) {
      Dot::merge(Dot::load(codes + block * 64), Dot::load(lower + block * 64), &out[0][0], &out[0][1]);
    } else if constexpr (kStorage == kCodesBytes) {
      const uint8_t* const from = codes + block * 128;
      for (int quad = 0; quad < 2; ++quad) {
        if constexpr (kPlanes == 1) {
          out[0][quad] = Dot::load(from + quad * 64);
        } else {
          const auto bytes = Dot::load(from + quad * 64);
          out[0][quad] = Dot::high_nibbles(bytes);
          out[1][quad] = Dot::low_nibbles(bytes);
        }
      }
    } else {
      nibbles(codes + block * 64, out[0]);
      if constexpr (kPlanes == 2) nibbles(lower + block * 64, out[1]);
    }
  }

  /// Adds the products of a quad with the bytes of all rows, which are k apart. Sums are
  /// [row][byte, the upper one first][plane]. They are counted by templates because they are to stay in
  /// registers: the compiler keeps an array in memory whose elements an outer loop chooses.
  template <int kQuad, int kSums, int kAt = 0>
  VERBATIM_INLINE static void add_quad(const Bytes (&weights)[kPlanes][2], const int8_t* a, int64_t k,
                                       Sum (&sums)[kSums]) {
    sums[kAt] = Dot::add(sums[kAt], weights[kAt % kPlanes][kQuad], a + kAt / kPlanes * k + kQuad * 4);
    if constexpr (kAt + 1 < kSums) add_quad<kQuad, kSums, kAt + 1>(weights, a, k, sums);
  }

  /// Adds the products of the inputs 8 `block` .. 8 `block` + 7 of a panel, whose codes begin at `codes` and
  /// `lower`, with the rows from `row` on.
  template <int kSums>
  VERBATIM_INLINE static void add_block(const CodeProduct& p, int64_t row, int64_t block,
                                        const uint8_t* codes, const uint8_t* lower, Sum (&sums)[kSums]) {
    Bytes weights[kPlanes][2];
    load(codes, lower, block, weights);
    const int8_t* const a = p.a + row * 2 * p.k + block * 8;
    // One quad meets all rows before the other does, so that no sum waits for its last product.
    add_quad<0>(weights, a, p.k, sums);
    add_quad<1>(weights, a, p.k, sums);
  }

  /// The product of a row, from its sums.
  VERBATIM_INLINE static Sum total(const Sum* sums) {
    const Sum sum = Dot::template add_shifted<8>(sums[2 * kPlanes - 1], sums[kPlanes - 1]);
    if constexpr (kPlanes == 1) return sum;
    return Dot::template add_shifted<4>(sum, Dot::template add_shifted<8>(sums[kPlanes], sums[0]));
  }
};

}  // namespace verbatim::generic
