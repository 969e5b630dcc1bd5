#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "kernels/kernel_table.h"

namespace verbatim::neon {

/// Four BF16 numbers, rounded to nearest even, NaN kept.
VERBATIM_INLINE uint16x4_t round_to_bf16(float32x4_t value) {
  const uint32x4_t bits = vreinterpretq_u32_f32(value);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  const uint32x4_t nan = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vshrn_n_u32(vbslq_u32(vceqq_f32(value, value), rounded, nan), 16);
}

/// Eight floats, rounded to signed integers of 16 bits, which the largest and smallest of these bound.
VERBATIM_INLINE int16x8_t round_to_words(float32x4_t first, float32x4_t second) {
  return vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(first)), vqmovn_s32(vcvtnq_s32_f32(second)));
}

/// Sixteen floats in four registers. See scalar/vector.h for what each operation means.
struct F32x16 {
  /// The number of such vectors that a block of a matrix product keeps in registers.
  static constexpr int kSums = 4;
  float32x4_t part[4];

  VERBATIM_INLINE static F32x16 set(float value) {
    const float32x4_t all = vdupq_n_f32(value);
    return {{all, all, all, all}};
  }
  VERBATIM_INLINE static F32x16 load(const float* from) {
    return {{vld1q_f32(from), vld1q_f32(from + 4), vld1q_f32(from + 8), vld1q_f32(from + 12)}};
  }
  VERBATIM_INLINE static uint16x8_t words(const void* from, int index) {
    return vld1q_u16(static_cast<const uint16_t*>(from) + 8 * index);
  }
  VERBATIM_INLINE static float32x4_t widen(uint16x4_t bits) {
    return vreinterpretq_f32_u32(vshll_n_u16(bits, 16));
  }
  VERBATIM_INLINE static F32x16 load(const BFloat16* from) {
    const uint16x8_t first = words(from, 0);
    const uint16x8_t second = words(from, 1);
    return {{widen(vget_low_u16(first)), widen(vget_high_u16(first)), widen(vget_low_u16(second)),
             widen(vget_high_u16(second))}};
  }
  VERBATIM_INLINE static F32x16 load(const uint8_t* from) {
    const uint8x16_t bytes = vld1q_u8(from);
    const uint16x8_t first = vmovl_u8(vget_low_u8(bytes));
    const uint16x8_t second = vmovl_high_u8(bytes);
    return {{vcvtq_f32_u32(vmovl_u16(vget_low_u16(first))), vcvtq_f32_u32(vmovl_high_u16(first)),
             vcvtq_f32_u32(vmovl_u16(vget_low_u16(second))), vcvtq_f32_u32(vmovl_high_u16(second))}};
  }
  VERBATIM_INLINE static F32x16 load(const Float16* from) {
    const float16x8_t first = vreinterpretq_f16_u16(words(from, 0));
    const float16x8_t second = vreinterpretq_f16_u16(words(from, 1));
    return {{vcvt_f32_f16(vget_low_f16(first)), vcvt_high_f32_f16(first), vcvt_f32_f16(vget_low_f16(second)),
             vcvt_high_f32_f16(second)}};
  }
  VERBATIM_INLINE static void load_pairs(const BFloat16* from, F32x16* even, F32x16* odd) {
    for (int i = 0; i < 4; ++i) {
      const uint32x4_t pairs = vreinterpretq_u32_u16(words(from, i));
      even->part[i] = vreinterpretq_f32_u32(vshlq_n_u32(pairs, 16));
      odd->part[i] = vreinterpretq_f32_u32(vandq_u32(pairs, vdupq_n_u32(0xffff0000u)));
    }
  }
  VERBATIM_INLINE static F32x16 from_exponents(const uint8_t* exponents) {
    const uint8x16_t bytes = vld1q_u8(exponents);
    const uint16x8_t halves[2] = {vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes)};
    F32x16 v;
    for (int i = 0; i < 2; ++i) {
      v.part[2 * i] = vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vget_low_u16(halves[i])), 23));
      v.part[2 * i + 1] = vreinterpretq_f32_u32(vshlq_n_u32(vmovl_high_u16(halves[i]), 23));
    }
    return v;
  }
  VERBATIM_INLINE void store(float* to) const {
    for (int i = 0; i < 4; ++i) vst1q_f32(to + 4 * i, part[i]);
  }
  VERBATIM_INLINE void store(BFloat16* to) const {
    uint16_t* const bits = reinterpret_cast<uint16_t*>(to);
    for (int i = 0; i < 4; ++i) vst1_u16(bits + 4 * i, round_to_bf16(part[i]));
  }
  VERBATIM_INLINE static F32x16 from_integers(const int32_t* from) {
    F32x16 v;
    for (int i = 0; i < 4; ++i) v.part[i] = vcvtq_f32_s32(vld1q_s32(from + 4 * i));
    return v;
  }
  VERBATIM_INLINE static void store_two_int8(const F32x16 (&values)[4], int8_t* upper, int8_t* lower) {
    for (int i = 0; i < 4; ++i) values[i].store_two_int8(upper + 16 * i, lower + 16 * i);
  }
  VERBATIM_INLINE void store_two_int8(int8_t* upper, int8_t* lower) const {
    const int16x8_t first = round_to_words(part[0], part[1]);
    const int16x8_t second = round_to_words(part[2], part[3]);
    const int16x8_t half = vdupq_n_s16(128);
    vst1q_s8(upper,
             vcombine_s8(vshrn_n_s16(vaddq_s16(first, half), 8), vshrn_n_s16(vaddq_s16(second, half), 8)));
    vst1q_s8(lower, vcombine_s8(vmovn_s16(first), vmovn_s16(second)));
  }
  VERBATIM_INLINE void store_int8_quads(int8_t* to) const {
    static constexpr uint8_t kOrder[16] = {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15};
    const int8x16_t bytes = vcombine_s8(vqmovn_s16(round_to_words(part[0], part[1])),
                                        vqmovn_s16(round_to_words(part[2], part[3])));
    vst1q_s8(to, vqtbl1q_s8(bytes, vld1q_u8(kOrder)));
  }
};

#define VERBATIM_LANES(name, expression)                          \
  VERBATIM_INLINE F32x16 name(const F32x16& a, const F32x16& b) { \
    F32x16 v;                                                     \
    for (int i = 0; i < 4; ++i) v.part[i] = expression;           \
    return v;                                                     \
  }
VERBATIM_LANES(operator+, vaddq_f32(a.part[i], b.part[i]))
VERBATIM_LANES(operator-, vsubq_f32(a.part[i], b.part[i]))
VERBATIM_LANES(operator*, vmulq_f32(a.part[i], b.part[i]))
VERBATIM_LANES(operator/, vdivq_f32(a.part[i], b.part[i]))
// Not the instructions for the larger and the smaller, which give NaN where one of both is: here the second
// operand comes out, as on every machine path.
VERBATIM_LANES(max, vbslq_f32(vcgtq_f32(a.part[i], b.part[i]), a.part[i], b.part[i]))
VERBATIM_LANES(min, vbslq_f32(vcltq_f32(a.part[i], b.part[i]), a.part[i], b.part[i]))
#undef VERBATIM_LANES

VERBATIM_INLINE F32x16 fma(const F32x16& a, const F32x16& b, const F32x16& c) {
  F32x16 v;
  for (int i = 0; i < 4; ++i) v.part[i] = vfmaq_f32(c.part[i], a.part[i], b.part[i]);
  return v;
}
VERBATIM_INLINE F32x16 fma_of_bf16(const F32x16& a, const F32x16& b, const F32x16& c) {
  return fma(a, b, c);
}
VERBATIM_INLINE F32x16 absolute(const F32x16& a) {
  F32x16 v;
  for (int i = 0; i < 4; ++i) v.part[i] = vabsq_f32(a.part[i]);
  return v;
}
VERBATIM_INLINE F32x16 round(const F32x16& a) {
  F32x16 v;
  for (int i = 0; i < 4; ++i) v.part[i] = vrndnq_f32(a.part[i]);
  return v;
}
VERBATIM_INLINE F32x16 scale_by_power(const F32x16& a, const F32x16& shifted) {
  F32x16 v;
  for (int i = 0; i < 4; ++i) {
    const uint32x4_t exponent = vshlq_n_u32(vreinterpretq_u32_f32(shifted.part[i]), 23);
    v.part[i] = vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(a.part[i]), exponent));
  }
  return v;
}
VERBATIM_INLINE F32x16 zero_where_below(const F32x16& a, const F32x16& x, const F32x16& limit) {
  F32x16 v;
  for (int i = 0; i < 4; ++i) {
    const uint32x4_t bits = vreinterpretq_u32_f32(a.part[i]);
    v.part[i] = vreinterpretq_f32_u32(vbicq_u32(bits, vcltq_f32(x.part[i], limit.part[i])));
  }
  return v;
}
VERBATIM_INLINE float reduce_add(const F32x16& v) {
  const float32x4_t four = vaddq_f32(vaddq_f32(v.part[0], v.part[2]), vaddq_f32(v.part[1], v.part[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
VERBATIM_INLINE float reduce_max(const F32x16& v) {
  const auto larger = [](float32x4_t a, float32x4_t b) __attribute__((always_inline)) {
    return vbslq_f32(vcgtq_f32(a, b), a, b);
  };
  const float32x4_t four = larger(larger(v.part[0], v.part[2]), larger(v.part[1], v.part[3]));
  const float32x4_t two = larger(four, vextq_f32(four, four, 2));
  return vgetq_lane_f32(larger(two, vdupq_laneq_f32(two, 1)), 0);
}
VERBATIM_INLINE float reduce_first(const F32x16& v) {
  return vgetq_lane_f32(v.part[0], 0);
}

}  // namespace verbatim::neon
