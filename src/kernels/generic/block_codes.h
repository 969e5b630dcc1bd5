#pragma once

#include "kernels/generic/integer_dots.h"

namespace verbatim::generic {

/// The codes and scales of blocks of one shape, as dot products take them. `Dot` is the instruction set's
/// part (generic/integer_dots.h), and with it
///   bits<from, count, to>(packed): `count` bits of each byte, from bit `from` on, brought to bit `to`
///   join(a, b): the bits of both
///   signed_bytes(from), unsigned_bytes(from): sixteen integers; low_bits<mask>(integers)
///   shift_right<bits>(integers): the integers over 2^bits, rounded down
///   add_shifted<bits>(sum, integers): sum + integers · 2^bits
///   add_product(sum, a, b): sum + a · b, lane by lane
template <typename Dot, BlockShape kShape>
struct BlockCodes {
  using Sum = typename Dot::Sum;
  static constexpr BlockLayout kLayout = block_layout(kShape);
  /// The number of groups in a tile, and of quads in a group.
  static constexpr int kGroupsOfTile = kInnerStep / kLayout.group;
  static constexpr int kQuads = kLayout.group / 4;

  /// The scales of a group.
  VERBATIM_INLINE static Sum scales(const uint8_t* block, int group) {
    const uint8_t* const from = block + kLayout.scales_at() + group * kPanelWidth;
    if constexpr (kLayout.offsets) {
      return Dot::template low_bits<kLayout.scale_bits()>(Dot::unsigned_bytes(from));
    } else {
      return Dot::signed_bytes(from);
    }
  }

  /// The codes of the quad kQuad of a tile.
  template <int kQuad>
  VERBATIM_INLINE static auto codes(const uint8_t* tile) {
    [[maybe_unused]] const uint8_t* const pairs = tile + 256 * kLayout.nibbles;
    [[maybe_unused]] const uint8_t* const singles = pairs + 128 * kLayout.pairs;
    [[maybe_unused]] constexpr int kPairTo = 4 * kLayout.nibbles;
    [[maybe_unused]] constexpr int kSingleTo = kPairTo + 2 * kLayout.pairs;
    [[maybe_unused]] const auto pair = [&]() __attribute__((always_inline)) {
      return Dot::template bits<kQuad % 4 * 2, 2, kPairTo>(Dot::load(pairs + kQuad / 4 * 64));
    };
    [[maybe_unused]] const auto single = [&]() __attribute__((always_inline)) {
      return Dot::template bits<kQuad, 1, kSingleTo>(Dot::load(singles));
    };
    [[maybe_unused]] const auto nibble = [&]() __attribute__((always_inline)) {
      return Dot::template bits<kQuad % 2 * 4, 4, 0>(Dot::load(tile + kQuad / 2 * 64));
    };
    if constexpr (kLayout.nibbles == 0 && kLayout.singles == 0) {
      return pair();
    } else if constexpr (kLayout.nibbles == 0) {
      return Dot::join(pair(), single());
    } else if constexpr (kLayout.pairs != 0) {
      return Dot::join(nibble(), pair());
    } else if constexpr (kLayout.singles != 0) {
      return Dot::join(nibble(), single());
    } else {
      return nibble();
    }
  }
};

/// The products of a block with a row as a float, without the block's scale and the row's step: the integer
/// upper · 256 + lower, of up to 36 bits. Its lowest eight bits and the rest become floats and are added, so
/// that the result depends on the integer alone, however it was split.
template <typename V, typename Dot>
VERBATIM_INLINE V value_of_block(const typename Dot::Sum& upper, const typename Dot::Sum& lower) {
  const auto rest = Dot::template add_shifted<0>(Dot::template shift_right<8>(lower), upper);
  return Dot::to_float(rest) * V::set(256.0f) + Dot::to_float(Dot::template low_bits<255>(lower));
}

/// The sum of a block's products in two parts, 2^kLowBits · `upper` + `lower`, where it has more bits than a
/// lane.
template <typename Dot>
struct PartsOfSum {
  using Sum = typename Dot::Sum;
  static constexpr int kLowBits = 15;

  Sum upper;
  Sum lower;

  VERBATIM_INLINE void start() { upper = lower = Dot::start(0); }
  /// Adds sums of some of the block's products.
  VERBATIM_INLINE void add(const Sum& dots) {
    upper = Dot::template add_shifted<0>(upper, Dot::template shift_right<kLowBits>(dots));
    lower = Dot::template add_shifted<0>(lower, low(dots));
  }
  VERBATIM_INLINE static Sum low(const Sum& dots) {
    return Dot::template low_bits<(1 << kLowBits) - 1>(dots);
  }
  template <typename V>
  VERBATIM_INLINE V value() const {
    return value_of_block<V, Dot>(Dot::template add_shifted<kLowBits - 8>(Dot::start(0), upper), lower);
  }
};

}  // namespace verbatim::generic
