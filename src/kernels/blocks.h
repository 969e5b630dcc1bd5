#pragma once

#include <cstdint>

#include "base/float16.h"

namespace verbatim {

/// The shapes of blocks of 256 inputs by 16 columns, which are those of the K-quants of GGUF
/// (formats/k_quants.h).
enum BlockShape : int { kBlockQ2, kBlockQ3, kBlockQ4, kBlockQ5, kBlockQ6, kBlockShapes };
/// The number of inputs in a block.
inline constexpr int64_t kBlockInputs = 256;

/// What a block of a shape holds.
struct BlockLayout {
  int nibbles;   ///< 1 if a code has four bits in the plane of nibbles, else 0
  int pairs;     ///< 1 if a code has two bits in the plane of pairs, else 0
  int singles;   ///< 1 if a code has a bit in the plane of singles, else 0
  int group;     ///< the number of inputs that share a scale: 16 or 32
  bool offsets;  ///< whether groups have offsets, and scales without a sign
  int bias;      ///< the code that stands for zero

  /// The bits of a scale without a sign; the others of its byte do not matter.
  [[gnu::always_inline]] constexpr int scale_bits() const { return bits() == 2 ? 15 : 63; }

  // A block is, in this order: 16 F16 scales and 16 F16 scales of offsets; for each group 16 scales of a
  // byte; for each group 16 offsets of a byte, if there are offsets; then eight tiles of 32 inputs. A tile
  // has 256 bytes of nibbles, 128 of pairs and 64 of singles, as far as the shape has these. Four inputs of a
  // column, a quad, lie together: byte 4 c + j of 64 belongs to column c and input 4 q + j of the tile, where
  // nibbles of byte 64 b + .. are of the quads q = 2 b (the lower) and 2 b + 1, two bits from 2 i on of byte
  // 64 b + .. of pairs of the quad 4 b + i, and bit q of the singles of the quad q.
  [[gnu::always_inline]] constexpr int groups() const { return static_cast<int>(kBlockInputs) / group; }
  [[gnu::always_inline]] constexpr int64_t scales_at() const { return 64; }
  [[gnu::always_inline]] constexpr int64_t offsets_at() const { return scales_at() + groups() * 16; }
  [[gnu::always_inline]] constexpr int64_t tiles_at() const {
    return offsets_at() + (offsets ? groups() * 16 : 0);
  }
  [[gnu::always_inline]] constexpr int64_t tile_bytes() const {
    return 256 * nibbles + 128 * pairs + 64 * singles;
  }
  [[gnu::always_inline]] constexpr int64_t bytes() const {
    return tiles_at() + kBlockInputs / 32 * tile_bytes();
  }
  /// The number of bits of a code.
  [[gnu::always_inline]] constexpr int bits() const { return 4 * nibbles + 2 * pairs + singles; }
};
[[gnu::always_inline]] constexpr BlockLayout block_layout(BlockShape shape) {
  switch (shape) {
    case kBlockQ2:
      return {.nibbles = 0, .pairs = 1, .singles = 0, .group = 16, .offsets = true, .bias = 0};
    case kBlockQ3:
      return {.nibbles = 0, .pairs = 1, .singles = 1, .group = 16, .offsets = false, .bias = 4};
    case kBlockQ4:
      return {.nibbles = 1, .pairs = 0, .singles = 0, .group = 32, .offsets = true, .bias = 0};
    case kBlockQ5:
      return {.nibbles = 1, .pairs = 0, .singles = 1, .group = 32, .offsets = true, .bias = 0};
    default:
      return {.nibbles = 1, .pairs = 1, .singles = 0, .group = 16, .offsets = false, .bias = 32};
  }
}

/// A row of activations in integers of sixteen bits or, without the lower bytes, of eight. A block of 256
/// shares a step: an activation is step · (256 · upper + lower), both signed. Every array is for whole
/// blocks.
struct TwoByteRow {
  int8_t* upper;        ///< [k]
  int8_t* lower;        ///< [k], or null for rows of eight bits
  float* steps;         ///< [k / 256]
  int32_t* upper_sums;  ///< [k / 16]: sums of 16 upper bytes
  int32_t* lower_sums;  ///< [k / 16], or null
  float* of_16;         ///< [k / 16]: sums of 16 activations, negated
  float* of_32;         ///< [k / 32]: sums of 32 activations, negated
  /// [k]: 256 · upper + lower, or null. Of every four bytes come the first and the third, then the second and
  /// the fourth, as even_words() and odd_words() take them from a quad of codes.
  int16_t* words;
};

/// A number of rows that is never reached: rows are not taken as words.
inline constexpr int64_t kNeverInWords = INT64_MAX;

/// The operands of a product of rows in two bytes with the codes of Q8_0 (formats/q8_0.h), whose halves lie
/// in two planes.
struct HalvesProduct {
  const TwoByteRow* rows;  ///< with both bytes, every four in kQuadOrder
  int64_t row_count;
  const uint8_t* upper;   ///< of the first panel: [panel][tiles] 256 bytes, each the halves of two codes
  const uint8_t* lower;   ///< laid out as the upper halves
  const Float16* scales;  ///< [panel][tiles][16]
  int64_t panel_count;
  int64_t tiles;  ///< the number of tiles of 32 inputs in a panel
  float* c;       ///< the result for the first panel's columns
  int64_t c_stride;
};

/// The operands of a product with panels of blocks of one shape.
struct BlockProduct {
  const TwoByteRow* rows;
  int64_t row_count;
  int64_t row_stride;     ///< the bytes between the codes of rows, which is the same for all
  const uint8_t* panels;  ///< panels lie one after the other
  int64_t panel_count;
  int64_t blocks;  ///< the number of blocks in a panel
  float* c;        ///< the result for the first panel's columns
  int64_t c_stride;
};

}  // namespace verbatim
