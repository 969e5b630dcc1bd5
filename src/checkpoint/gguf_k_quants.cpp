#include "checkpoint/gguf_k_quants.h"

#include "checkpoint/gguf_bits.h"

namespace verbatim {

namespace {

/// Q2_K and Q3_K: the two lower bits of element i, of 64 bytes with four elements each. 128 elements share 32
/// bytes, and 32 of them the place in the byte.
int two_bits(const uint8_t* codes, int i) {
  return codes[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
}

/// The scale of a group of Q3_K.
int scale_of_q3_k(const uint8_t* scales, int group) {
  const int low = scales[group % 8] >> group / 8 * 4 & 15;
  const int high = scales[8 + group % 4] >> group / 4 * 2 & 3;
  return (low | high << 4) - 32;
}

/// The scale and the offset, of six bits each, of one of the eight groups of Q4_K and Q5_K.
struct SixBits {
  int scale;
  int offset;
};
SixBits six_bits(const uint8_t* packed, int group) {
  if (group < 4) {
    return {packed[group] & 63, packed[group + 4] & 63};
  }
  const int both = packed[group + 4];
  return {(both & 15) | packed[group - 4] >> 6 << 4, both >> 4 | packed[group] >> 6 << 4};
}

/// Q4_K and Q5_K: the four lower bits of element i. 64 elements share 32 bytes.
int four_bits(const uint8_t* codes, int i) {
  return codes[i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15;
}

/// Q4_K: F16 scales of scales and offsets, 12 bytes with eight of each, 128 of codes. Q5_K has 32 bytes with
/// the fifth bits before the codes.
template <bool five>
void dequantize_q4_or_q5_k(const uint8_t* block, float* out) {
  const float scale = load_half(block);
  const float offset = load_half(block + 2);
  const uint8_t* const fifths = block + 16;
  const uint8_t* const codes = block + (five ? 48 : 16);
  for (int group = 0; group < kSuper / 32; ++group) {
    const SixBits six = six_bits(block + 4, group);
    const float group_scale = scale * static_cast<float>(six.scale);
    const float group_offset = offset * static_cast<float>(six.offset);
    for (int i = group * 32; i < group * 32 + 32; ++i) {
      int code = four_bits(codes, i);
      if (five) code |= (fifths[i % 32] >> group & 1) << 4;
      out[i] = group_scale * static_cast<float>(code) - group_offset;
    }
  }
}

template <bool five>
void take_apart_q4_or_q5_k(const uint8_t* block, KQuantBlock* out) {
  out->scale = {load_u16(block)};
  out->offset = {load_u16(block + 2)};
  for (int group = 0; group < kSuper / 32; ++group) {
    const SixBits six = six_bits(block + 4, group);
    out->scales[group] = static_cast<int8_t>(six.scale);
    out->offsets[group] = static_cast<uint8_t>(six.offset);
  }
  for (int i = 0; i < kSuper; ++i) {
    int code = four_bits(block + (five ? 48 : 16), i);
    if (five) code |= (block[16 + i % 32] >> i / 32 & 1) << 4;
    out->codes[i] = static_cast<uint8_t>(code);
  }
}

/// Q6_K: the code of element i, of which 32 is to be subtracted.
int code_of_q6_k(const uint8_t* block, int i) {
  const int low = block[i / 128 * 64 + i % 64] >> i % 128 / 64 * 4 & 15;
  return low | two_bits(block + 128, i) << 4;
}

}  // namespace

/// Q2_K: 16 bytes with a scale and an offset for 16 elements each, 64 of codes, F16 scales of both.
void dequantize_q2_k(const uint8_t* block, float* out) {
  const float scale = load_half(block + 80);
  const float offset = load_half(block + 82);
  for (int group = 0; group < kSuper / 16; ++group) {
    const float group_scale = scale * static_cast<float>(block[group] & 15);
    const float group_offset = offset * static_cast<float>(block[group] >> 4);
    for (int i = group * 16; i < group * 16 + 16; ++i) {
      out[i] = group_scale * static_cast<float>(two_bits(block + 16, i)) - group_offset;
    }
  }
}

void take_apart_q2_k(const uint8_t* block, KQuantBlock* out) {
  out->scale = {load_u16(block + 80)};
  out->offset = {load_u16(block + 82)};
  for (int group = 0; group < kSuper / 16; ++group) {
    out->scales[group] = static_cast<int8_t>(block[group] & 15);
    out->offsets[group] = block[group] >> 4;
  }
  for (int i = 0; i < kSuper; ++i) out->codes[i] = static_cast<uint8_t>(two_bits(block + 16, i));
}

/// Q3_K: 32 bytes with the third bits, 64 of codes, 12 with sixteen scales of six bits, an F16 scale of
/// these. The third bit says that nothing is to be subtracted.
void dequantize_q3_k(const uint8_t* block, float* out) {
  const uint8_t* const scales = block + 96;
  const float scale = load_half(block + 108);
  for (int group = 0; group < kSuper / 16; ++group) {
    const float group_scale = scale * static_cast<float>(scale_of_q3_k(scales, group));
    for (int i = group * 16; i < group * 16 + 16; ++i) {
      const bool third = (block[i % 32] >> i / 32 & 1) != 0;
      out[i] = group_scale * static_cast<float>(two_bits(block + 32, i) - (third ? 0 : 4));
    }
  }
}

void take_apart_q3_k(const uint8_t* block, KQuantBlock* out) {
  out->scale = {load_u16(block + 108)};
  for (int group = 0; group < kSuper / 16; ++group) {
    out->scales[group] = static_cast<int8_t>(scale_of_q3_k(block + 96, group));
  }
  for (int i = 0; i < kSuper; ++i) {
    const int third = block[i % 32] >> i / 32 & 1;
    out->codes[i] = static_cast<uint8_t>(two_bits(block + 32, i) | third << 2);
  }
}

void take_apart_q6_k(const uint8_t* block, KQuantBlock* out) {
  out->scale = {load_u16(block + 208)};
  for (int group = 0; group < kSuper / 16; ++group)
    out->scales[group] = static_cast<int8_t>(block[192 + group]);
  for (int i = 0; i < kSuper; ++i) out->codes[i] = static_cast<uint8_t>(code_of_q6_k(block, i));
}

/// Q6_K: 128 bytes with four bits and 64 with two more of each element, 16 scales in int8, an F16 scale of
/// these. 128 elements share 64 bytes of the first and 32 of the second.
void dequantize_q6_k(const uint8_t* block, float* out) {
  const uint8_t* const scales = block + 192;
  const float scale = load_half(block + 208);
  for (int i = 0; i < kSuper; ++i) {
    const float group_scale = scale * static_cast<float>(static_cast<int8_t>(scales[i / 16]));
    out[i] = group_scale * static_cast<float>(code_of_q6_k(block, i) - 32);
  }
}

void dequantize_q4_k(const uint8_t* block, float* out) {
  dequantize_q4_or_q5_k<false>(block, out);
}
void dequantize_q5_k(const uint8_t* block, float* out) {
  dequantize_q4_or_q5_k<true>(block, out);
}
void take_apart_q4_k(const uint8_t* block, KQuantBlock* out) {
  take_apart_q4_or_q5_k<false>(block, out);
}
void take_apart_q5_k(const uint8_t* block, KQuantBlock* out) {
  take_apart_q4_or_q5_k<true>(block, out);
}

}  // namespace verbatim
