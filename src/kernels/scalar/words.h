#pragma once

#include <bit>
#include <cstring>

#include "kernels/scalar/vector.h"

namespace verbatim::scalar {

/// Thirty-two 16-bit words in plain C++: the reference for the other instruction sets' words.
struct U16x32 {
  uint16_t lane[32];

  struct Table {
    uint16_t entries[32];
  };
  VERBATIM_INLINE static Table table(const uint16_t* entries) {
    Table t;
    std::memcpy(t.entries, entries, sizeof t.entries);
    return t;
  }

  VERBATIM_INLINE static U16x32 set(uint16_t value) {
    U16x32 v;
    for (uint16_t& x : v.lane) x = value;
    return v;
  }
  VERBATIM_INLINE static U16x32 load(const void* from) {
    U16x32 v;
    std::memcpy(v.lane, from, sizeof v.lane);
    return v;
  }
  /// Sixteen bytes, or 16-bit words, each in both lanes of its pair.
  VERBATIM_INLINE static U16x32 spread_bytes(const uint8_t* from) {
    U16x32 v;
    for (int i = 0; i < 32; ++i) v.lane[i] = from[i / 2];
    return v;
  }
  /// Thirty-two bytes, one to a lane.
  VERBATIM_INLINE static U16x32 widen_bytes(const uint8_t* from) {
    U16x32 v;
    for (int i = 0; i < 32; ++i) v.lane[i] = from[i];
    return v;
  }
  VERBATIM_INLINE void store(uint16_t* to) const { std::memcpy(to, lane, sizeof lane); }
  /// The first words of all pairs to to[0..15], the second to to[16..31].
  VERBATIM_INLINE void store_split(uint16_t* to) const {
    for (int i = 0; i < 32; ++i) to[i % 2 * 16 + i / 2] = lane[i];
  }
  template <int kBits>
  VERBATIM_INLINE U16x32 shift_left() const {
    U16x32 v;
    for (int i = 0; i < 32; ++i) v.lane[i] = static_cast<uint16_t>(lane[i] << kBits);
    return v;
  }
  template <int kBits>
  VERBATIM_INLINE U16x32 shift_right() const {
    U16x32 v;
    for (int i = 0; i < 32; ++i) v.lane[i] = static_cast<uint16_t>(lane[i] >> kBits);
    return v;
  }
  /// Words whose low four bits are the four from bit kFrom on. What is above them does not matter.
  template <int kFrom>
  VERBATIM_INLINE U16x32 nibbles() const {
    return shift_right<kFrom>();
  }
  /// table[index], of which the low five bits count; look_up16: the low four, into a table that repeats
  /// itself after sixteen entries.
  VERBATIM_INLINE static U16x32 look_up32(const Table& table, const U16x32& index) {
    U16x32 v;
    for (int i = 0; i < 32; ++i) v.lane[i] = table.entries[index.lane[i] & 31];
    return v;
  }
  VERBATIM_INLINE static U16x32 look_up16(const Table& table, const U16x32& index) {
    return look_up32(table, index);
  }
  /// Integers plus 128, in the lower (kByte = 0) or the upper bytes (kByte = 1) of words, to BF16.
  template <int kByte>
  VERBATIM_INLINE static U16x32 bytes_to_bf16(const U16x32& codes) {
    U16x32 v;
    for (int i = 0; i < 32; ++i) {
      const int byte = codes.lane[i] >> (8 * kByte) & 0xff;
      v.lane[i] = to_bfloat16(static_cast<float>(byte - 128)).bits;
    }
    return v;
  }
};

#define VERBATIM_WORDS(name, expression)                                        \
  VERBATIM_INLINE U16x32 name(const U16x32& a, const U16x32& b) {               \
    U16x32 v;                                                                   \
    for (int i = 0; i < 32; ++i) v.lane[i] = static_cast<uint16_t>(expression); \
    return v;                                                                   \
  }
VERBATIM_WORDS(operator+, a.lane[i] + b.lane[i])
VERBATIM_WORDS(operator&, a.lane[i] & b.lane[i])
VERBATIM_WORDS(operator|, a.lane[i] | b.lane[i])
VERBATIM_WORDS(operator^, a.lane[i] ^ b.lane[i])
VERBATIM_WORDS(operator-, a.lane[i] - b.lane[i])
VERBATIM_WORDS(subtract_saturating, a.lane[i] > b.lane[i] ? a.lane[i] - b.lane[i] : 0)
#undef VERBATIM_WORDS

/// The bits of a where the mask has ones, those of b where it has zeros.
VERBATIM_INLINE U16x32 select(const U16x32& mask, const U16x32& a, const U16x32& b) {
  U16x32 v;
  for (int i = 0; i < 32; ++i) {
    v.lane[i] = static_cast<uint16_t>((a.lane[i] & mask.lane[i]) | (b.lane[i] & ~mask.lane[i]));
  }
  return v;
}

}  // namespace verbatim::scalar
