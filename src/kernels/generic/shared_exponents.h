#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// Sixteen bytes, one for each column of a panel.
using Bytes16 [[gnu::vector_size(16)]] = uint8_t;

VERBATIM_INLINE Bytes16 load_bytes(const uint8_t* from) {
  Bytes16 bytes;
  __builtin_memcpy(&bytes, from, sizeof bytes);
  return bytes;
}

/// Up to four tiles of MXFP4 whose activations share a scale are added up in integers before they are scaled:
///   Σ over the tiles of dot << shift, times 2^(top - kStep)
/// where `top` is the largest exponent of a column's tiles and a tile is shifted by kStep less its distance
/// from it. Tiles further below it than kStep would lose bits; they are left to the next level, whose largest
/// exponent is the largest of theirs. Hardly any weights have a second level, none more than four.
struct SharedExponents {
  static constexpr int kStep = 3;
  static constexpr int kTiles = 4;

  Bytes16 shifts[kTiles];  ///< 255: not in this level
  Bytes16 step;            ///< the exponents that the sums are scaled by
  bool more;               ///< there is another level

  SharedExponents() = default;
  /// The first level of `count` tiles, whose exponents are [count][16].
  VERBATIM_INLINE SharedExponents(const uint8_t* exponents, int64_t count) {
    const Bytes16 first = load_bytes(exponents);
    Bytes16 all[kTiles];
    for (int i = 0; i < kTiles; ++i) all[i] = i < count ? load_bytes(exponents + i * 16) : first;
    const Bytes16 top = most(most(all[0], all[1]), most(all[2], all[3]));
    const Bytes16 lowest = least(least(all[0], all[1]), least(all[2], all[3]));
    if (any(reinterpret_cast<Bytes16>(top - lowest > kStep))) [[unlikely]] {
      for (int i = 0; i < kTiles; ++i) left_[i] = i < count ? all[i] : Bytes16{};
      advance();
      return;
    }
    for (int i = 0; i < kTiles; ++i) shifts[i] = all[i] + kStep - top;
    step = scale_of(top);
    more = false;
  }

  /// Becomes the next level.
  VERBATIM_INLINE void advance() {
    const Bytes16 top = most(most(left_[0], left_[1]), most(left_[2], left_[3]));
    Bytes16 others{};
    for (int i = 0; i < kTiles; ++i) {
      const Bytes16 below = top - left_[i];
      const auto further = reinterpret_cast<Bytes16>(below > kStep);
      const auto nothing = reinterpret_cast<Bytes16>(left_[i] == 0);
      shifts[i] = (kStep - below) | further | nothing;
      left_[i] &= further & reinterpret_cast<Bytes16>(left_[i] > kZeros);
      others |= left_[i];
    }
    step = scale_of(top);
    more = any(others);
  }

 private:
  /// The exponents of groups of zeros are below all others and need no level of their own.
  static constexpr uint8_t kZeros = 3;

  VERBATIM_INLINE static Bytes16 most(Bytes16 a, Bytes16 b) { return a > b ? a : b; }
  VERBATIM_INLINE static Bytes16 least(Bytes16 a, Bytes16 b) { return a < b ? a : b; }
  VERBATIM_INLINE static bool any(Bytes16 bytes) {
    uint64_t halves[2];
    __builtin_memcpy(halves, &bytes, sizeof halves);
    return (halves[0] | halves[1]) != 0;
  }
  VERBATIM_INLINE static Bytes16 scale_of(Bytes16 top) { return top > kStep ? top - kStep : Bytes16{}; }

  Bytes16 left_[kTiles];  // of the levels to come; 0: done
};

}  // namespace verbatim::generic
