#pragma once

#include "kernels/generic/code_values.h"
#include "kernels/neon/vector.h"

namespace verbatim::neon {

/// The parts of an integer product with plain NEON. Weights are signed bytes as they are, without offsets;
/// products of 16 bits are added in pairs, then to sums of 32 bits. So open() and close() do nothing.
struct Dot {
  struct Bytes {
    uint8x16_t part[4];
  };
  struct Sum {
    int32x4_t part[4];
  };
  using Partial = Sum;
  static constexpr int32_t kE2m1Offset = 0;
  static constexpr int32_t kBsfpOffset = 0;
  static constexpr int32_t kInt8Offset = 0;
  static constexpr int kCodeStreams = 1;
  static constexpr int kCodeSums = 8;
  static constexpr bool kWholeBytes = false;

  VERBATIM_INLINE static Sum start(int32_t value) {
    const int32x4_t all = vdupq_n_s32(value);
    return {{all, all, all, all}};
  }
  VERBATIM_INLINE static Bytes load(const uint8_t* codes) {
    return {{vld1q_u8(codes), vld1q_u8(codes + 16), vld1q_u8(codes + 32), vld1q_u8(codes + 48)}};
  }
  VERBATIM_INLINE static Bytes look_up(const int8_t (&values)[16], const Bytes& nibbles) {
    const uint8x16_t table = vreinterpretq_u8_s8(vld1q_s8(values));
    Bytes bytes;
    for (int i = 0; i < 4; ++i) bytes.part[i] = vqtbl1q_u8(table, nibbles.part[i]);
    return bytes;
  }
  VERBATIM_INLINE static Bytes low_nibbles(const Bytes& codes) {
    Bytes bytes;
    for (int i = 0; i < 4; ++i) bytes.part[i] = vandq_u8(codes.part[i], vdupq_n_u8(15));
    return bytes;
  }
  VERBATIM_INLINE static Bytes high_nibbles(const Bytes& codes) {
    Bytes bytes;
    for (int i = 0; i < 4; ++i) bytes.part[i] = vshrq_n_u8(codes.part[i], 4);
    return bytes;
  }
  VERBATIM_INLINE static Bytes e2m1_low(const Bytes& codes) {
    return look_up(generic::kDoubledE2m1, low_nibbles(codes));
  }
  VERBATIM_INLINE static Bytes e2m1_high(const Bytes& codes) {
    return look_up(generic::kDoubledE2m1, high_nibbles(codes));
  }
  VERBATIM_INLINE static Bytes bsfp_low(const Bytes& codes) {
    return look_up(generic::kDoubledBsfp, low_nibbles(codes));
  }
  VERBATIM_INLINE static Bytes bsfp_high(const Bytes& codes) {
    return look_up(generic::kDoubledBsfp, high_nibbles(codes));
  }
  VERBATIM_INLINE static Bytes int8(const uint8_t* codes) { return load(codes); }
  template <int kFrom, int kCount, int kTo>
  VERBATIM_INLINE static Bytes bits(Bytes packed) {
    for (uint8x16_t& bytes : packed.part) {
      if constexpr (kFrom > kTo) bytes = vshrq_n_u8(bytes, kFrom - kTo);
      if constexpr (kFrom < kTo) bytes = vshlq_n_u8(bytes, kTo - kFrom);
      bytes = vandq_u8(bytes, vdupq_n_u8(((1 << kCount) - 1) << kTo));
    }
    return packed;
  }
  VERBATIM_INLINE static Bytes join(const Bytes& a, const Bytes& b) {
    Bytes bytes;
    for (int i = 0; i < 4; ++i) bytes.part[i] = vorrq_u8(a.part[i], b.part[i]);
    return bytes;
  }
  VERBATIM_INLINE static Sum signed_bytes(const uint8_t* from) {
    const int8x16_t bytes = vreinterpretq_s8_u8(vld1q_u8(from));
    const int16x8_t first = vmovl_s8(vget_low_s8(bytes));
    const int16x8_t second = vmovl_high_s8(bytes);
    return {{vmovl_s16(vget_low_s16(first)), vmovl_high_s16(first), vmovl_s16(vget_low_s16(second)),
             vmovl_high_s16(second)}};
  }
  VERBATIM_INLINE static Sum unsigned_bytes(const uint8_t* from) {
    const uint8x16_t bytes = vld1q_u8(from);
    const int16x8_t first = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes)));
    const int16x8_t second = vreinterpretq_s16_u16(vmovl_high_u8(bytes));
    return {{vmovl_s16(vget_low_s16(first)), vmovl_high_s16(first), vmovl_s16(vget_low_s16(second)),
             vmovl_high_s16(second)}};
  }
  template <int kMask>
  VERBATIM_INLINE static Sum low_bits(Sum a) {
    for (int32x4_t& sum : a.part) sum = vandq_s32(sum, vdupq_n_s32(kMask));
    return a;
  }
  template <int kBits>
  VERBATIM_INLINE static Sum shift_right(Sum a) {
    for (int32x4_t& sum : a.part) sum = vshrq_n_s32(sum, kBits);
    return a;
  }
  VERBATIM_INLINE static Sum add_product(Sum sum, const Sum& a, const Sum& b) {
    for (int i = 0; i < 4; ++i) sum.part[i] = vmlaq_s32(sum.part[i], a.part[i], b.part[i]);
    return sum;
  }
  VERBATIM_INLINE static int8x16_t broadcast(const int8_t* quad) {
    int32_t four;
    __builtin_memcpy(&four, quad, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
  }
  VERBATIM_INLINE static Partial open(const Sum& sum) { return sum; }
  VERBATIM_INLINE static Sum close(const Sum&, const Partial& partial) { return partial; }
  /// Two products of a column add up within 16 bits: 2 · 128 · 127 just fits.
  VERBATIM_INLINE static Partial add(Partial sum, const Bytes& weights, const int8_t* quad) {
    const int8x16_t a = broadcast(quad);
    for (int i = 0; i < 4; ++i) {
      const int8x16_t w = vreinterpretq_s8_u8(weights.part[i]);
      const int16x8_t first = vmull_s8(vget_low_s8(w), vget_low_s8(a));
      sum.part[i] = vpadalq_s16(sum.part[i], vpaddq_s16(first, vmull_high_s8(w, a)));
    }
    return sum;
  }
  VERBATIM_INLINE static Partial add_int8(const Partial& sum, const Bytes& weights, const int8_t* quad) {
    return add(sum, weights, quad);
  }
  VERBATIM_INLINE static Sum subtract_product(Sum sum, const uint8_t* zeros, int32_t value) {
    const Sum wide = unsigned_bytes(zeros);
    for (int i = 0; i < 4; ++i) sum.part[i] = vmlsq_n_s32(sum.part[i], wide.part[i], value);
    return sum;
  }
  template <int kBits>
  VERBATIM_INLINE static Sum add_shifted(Sum sum, const Sum& shifted) {
    for (int i = 0; i < 4; ++i) sum.part[i] = vaddq_s32(sum.part[i], vshlq_n_s32(shifted.part[i], kBits));
    return sum;
  }
  VERBATIM_INLINE static Sum add_shifted(Sum sum, const Sum& shifted, const uint8_t* shifts) {
    const Sum by = unsigned_bytes(shifts);
    for (int i = 0; i < 4; ++i) {
      // The instruction takes the low byte of a shift as signed, so that large ones would shift to the right.
      const int32x4_t kept = vreinterpretq_s32_u32(vcltq_s32(by.part[i], vdupq_n_s32(32)));
      sum.part[i] = vaddq_s32(sum.part[i], vandq_s32(kept, vshlq_s32(shifted.part[i], by.part[i])));
    }
    return sum;
  }
  VERBATIM_INLINE static void store(const Sum& sum, int32_t* out) {
    for (int i = 0; i < 4; ++i) vst1q_s32(out + 4 * i, sum.part[i]);
  }
  VERBATIM_INLINE static F32x16 to_float(const Sum& sum) {
    F32x16 v;
    for (int i = 0; i < 4; ++i) v.part[i] = vcvtq_f32_s32(sum.part[i]);
    return v;
  }
};

}  // namespace verbatim::neon
