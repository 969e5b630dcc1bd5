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

/// Adds up to four tiles of MXFP4, whose activations share a scale, in integers before they are scaled. A
/// level is the sum
///   Σ over tiles of dot << shift, times 2^(top - kStep)
/// where `top` is the largest exponent of a column's tiles, and `shift` is kStep less the distance of the
/// tile's exponent from `top`. Tiles more than kStep below `top` would lose bits. They belong to the next
/// level, whose `top` is the largest exponent among them. Hardly any weights need a second level, and none
/// more than four.
struct SharedExponents {
  static constexpr int kStep = 3;
  static constexpr int kTiles = 4;

  Bytes16 shifts[kTiles];  ///< 255: not in this level
  Bytes16 step;            ///< the exponents that the sums are scaled by
  bool more;               ///< there is another level

  SharedExponents() = default;
  /// Makes the first level of `count` tiles, whose exponents are [count][16].
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

  /// Advances to the next level.
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
  /// The largest exponent of groups of zeros; they are below all others and need no level of their own.
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
