#pragma once

#include "kernels/neon/vector.h"

namespace verbatim::neon {

/// Thirty-two 16-bit words in four registers. See scalar/words.h for what each operation means.
struct U16x32 {
  uint16x8_t part[4];

  /// The entries as 64 bytes, which one instruction looks bytes up in.
  struct Table {
    uint8x16x4_t entries;
  };
  VERBATIM_INLINE static Table table(const uint16_t* entries) {
    Table t;
    for (int i = 0; i < 4; ++i) t.entries.val[i] = vreinterpretq_u8_u16(vld1q_u16(entries + 8 * i));
    return t;
  }

  VERBATIM_INLINE static U16x32 set(uint16_t value) {
    const uint16x8_t all = vdupq_n_u16(value);
    return {{all, all, all, all}};
  }
  VERBATIM_INLINE static U16x32 load(const void* from) {
    U16x32 v;
    for (int i = 0; i < 4; ++i) {
      v.part[i] = vreinterpretq_u16_u8(vld1q_u8(static_cast<const uint8_t*>(from) + 16 * i));
    }
    return v;
  }
  VERBATIM_INLINE static U16x32 spread_bytes(const uint8_t* from) {
    const uint8x16_t bytes = vld1q_u8(from);
    const uint16x8_t first = vmovl_u8(vget_low_u8(bytes));
    const uint16x8_t second = vmovl_high_u8(bytes);
    return {{vzip1q_u16(first, first), vzip2q_u16(first, first), vzip1q_u16(second, second),
             vzip2q_u16(second, second)}};
  }
  VERBATIM_INLINE static U16x32 widen_bytes(const uint8_t* from) {
    const uint8x16_t first = vld1q_u8(from);
    const uint8x16_t second = vld1q_u8(from + 16);
    return {{vmovl_u8(vget_low_u8(first)), vmovl_high_u8(first), vmovl_u8(vget_low_u8(second)),
             vmovl_high_u8(second)}};
  }
  VERBATIM_INLINE void store(uint16_t* to) const {
    for (int i = 0; i < 4; ++i) vst1q_u16(to + 8 * i, part[i]);
  }
  VERBATIM_INLINE void store_split(uint16_t* to) const {
    for (int i = 0; i < 2; ++i) {
      vst1q_u16(to + 8 * i, vuzp1q_u16(part[2 * i], part[2 * i + 1]));
      vst1q_u16(to + 16 + 8 * i, vuzp2q_u16(part[2 * i], part[2 * i + 1]));
    }
  }
  template <int kBits>
  VERBATIM_INLINE U16x32 shift_left() const {
    U16x32 v;
    for (int i = 0; i < 4; ++i) v.part[i] = vshlq_n_u16(part[i], kBits);
    return v;
  }
  template <int kBits>
  VERBATIM_INLINE U16x32 shift_right() const {
    if constexpr (kBits == 0) {  // which the instruction cannot
      return *this;
    } else {
      U16x32 v;
      for (int i = 0; i < 4; ++i) v.part[i] = vshrq_n_u16(part[i], kBits);
      return v;
    }
  }
  template <int kFrom>
  VERBATIM_INLINE U16x32 nibbles() const {
    return shift_right<kFrom>();
  }
  /// The places of the two bytes of entries whose numbers are the words, of which the bits of kMask count.
  template <int kMask>
  VERBATIM_INLINE static uint8x16_t places(uint16x8_t words) {
    const uint16x8_t index = vandq_u16(words, vdupq_n_u16(kMask));
    return vreinterpretq_u8_u16(vmlaq_n_u16(vdupq_n_u16(0x0100), index, 0x0202));
  }
  VERBATIM_INLINE static U16x32 look_up32(const Table& table, const U16x32& index) {
    U16x32 v;
    for (int i = 0; i < 4; ++i) {
      v.part[i] = vreinterpretq_u16_u8(vqtbl4q_u8(table.entries, places<31>(index.part[i])));
    }
    return v;
  }
  VERBATIM_INLINE static U16x32 look_up16(const Table& table, const U16x32& index) {
    const uint8x16x2_t first = {{table.entries.val[0], table.entries.val[1]}};
    U16x32 v;
    for (int i = 0; i < 4; ++i) {
      v.part[i] = vreinterpretq_u16_u8(vqtbl2q_u8(first, places<15>(index.part[i])));
    }
    return v;
  }
  template <int kByte>
  VERBATIM_INLINE static U16x32 bytes_to_bf16(const U16x32& codes) {
    const auto upper_half = [](int32x4_t integers) __attribute__((always_inline)) {
      return vshrn_n_u32(vreinterpretq_u32_f32(vcvtq_f32_s32(integers)), 16);
    };
    U16x32 v;
    for (int i = 0; i < 4; ++i) {
      const uint16x8_t bytes =
          kByte == 0 ? vandq_u16(codes.part[i], vdupq_n_u16(0xff)) : vshrq_n_u16(codes.part[i], 8);
      const int16x8_t words = vsubq_s16(vreinterpretq_s16_u16(bytes), vdupq_n_s16(128));
      v.part[i] = vcombine_u16(upper_half(vmovl_s16(vget_low_s16(words))), upper_half(vmovl_high_s16(words)));
    }
    return v;
  }
};

#define VERBATIM_WORDS(name, operation)                                      \
  VERBATIM_INLINE U16x32 name(const U16x32& a, const U16x32& b) {            \
    U16x32 v;                                                                \
    for (int i = 0; i < 4; ++i) v.part[i] = operation(a.part[i], b.part[i]); \
    return v;                                                                \
  }
VERBATIM_WORDS(operator+, vaddq_u16)
VERBATIM_WORDS(operator&, vandq_u16)
VERBATIM_WORDS(operator|, vorrq_u16)
VERBATIM_WORDS(operator^, veorq_u16)
VERBATIM_WORDS(operator-, vsubq_u16)
VERBATIM_WORDS(subtract_saturating, vqsubq_u16)
#undef VERBATIM_WORDS

VERBATIM_INLINE U16x32 select(const U16x32& mask, const U16x32& a, const U16x32& b) {
  U16x32 v;
  for (int i = 0; i < 4; ++i) v.part[i] = vbslq_u16(mask.part[i], a.part[i], b.part[i]);
  return v;
}

}  // namespace verbatim::neon
