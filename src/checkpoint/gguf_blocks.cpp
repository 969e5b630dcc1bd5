#include "checkpoint/gguf_blocks.h"

#include <bit>

#include "checkpoint/gguf_bits.h"
#include "checkpoint/gguf_codebooks.h"
#include "checkpoint/gguf_k_quants.h"

namespace verbatim {

namespace {

// In all types but Q8_0, a byte of codes holds the lower bits of elements that lie half a group apart or
// further, never of neighbours.

/// Elements and bytes of the types with 32 elements in a block.
constexpr int kSmall = 32;
/// Q4_0 and Q4_1: 16 bytes of codes, the lower halves of which are the first 16 elements.
int nibble(const uint8_t* codes, int i) {
  return i < kSmall / 2 ? codes[i] & 15 : codes[i - kSmall / 2] >> 4;
}

/// Q5_0 and Q5_1: a bit for each of 32 elements, above its four bits.
int fifth_bit(const uint8_t* bits, int i) {
  return (bits[i / 8] >> i % 8 & 1) << 4;
}

void codes_of_q4_0(const uint8_t* block, int8_t* out) {
  for (int i = 0; i < kSmall; ++i) out[i] = static_cast<int8_t>(nibble(block + 2, i) - 8);
}

void dequantize_q4_1(const uint8_t* block, float* out) {
  const float scale = load_half(block);
  const float least = load_half(block + 2);
  for (int i = 0; i < kSmall; ++i) out[i] = scale * static_cast<float>(nibble(block + 4, i)) + least;
}

void codes_of_q5_0(const uint8_t* block, int8_t* out) {
  for (int i = 0; i < kSmall; ++i)
    out[i] = static_cast<int8_t>((nibble(block + 6, i) | fifth_bit(block + 2, i)) - 16);
}

void dequantize_q5_1(const uint8_t* block, float* out) {
  const float scale = load_half(block);
  const float least = load_half(block + 2);
  for (int i = 0; i < kSmall; ++i) {
    const int code = nibble(block + 8, i) | fifth_bit(block + 4, i);
    out[i] = scale * static_cast<float>(code) + least;
  }
}

void codes_of_q8_0(const uint8_t* block, int8_t* out) {
  for (int i = 0; i < kSmall; ++i) out[i] = static_cast<int8_t>(block[2 + i]);
}

/// Dequantizes a block of a type that has codes. Exact: an F16 scale times an int8 has at most 19 significant
/// bits.
template <void (*codes_of)(const uint8_t*, int8_t*)>
void dequantize_codes(const uint8_t* block, float* out) {
  int8_t codes[kSmall];
  codes_of(block, codes);
  const float scale = load_half(block);
  for (int i = 0; i < kSmall; ++i) out[i] = scale * static_cast<float>(codes[i]);
}

/// The sixteen values of IQ4_NL and IQ4_XS.
constexpr int8_t kUnevenSteps[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};

void codes_of_iq4_nl(const uint8_t* block, int8_t* out) {
  for (int i = 0; i < kSmall; ++i) out[i] = static_cast<int8_t>(kUnevenSteps[nibble(block + 2, i)]);
}

/// IQ4_XS: an F16 scale of scales, the upper two and then the lower four bits of eight scales, and eight
/// groups of codes as in IQ4_NL.
void dequantize_iq4_xs(const uint8_t* block, float* out) {
  const float scale = load_half(block);
  const int high_bits = load_u16(block + 2);
  for (int group = 0; group < kSuper / kSmall; ++group) {
    const int low = block[4 + group / 2] >> group % 2 * 4 & 15;
    const int high = high_bits >> group * 2 & 3;
    const float group_scale = scale * static_cast<float>((low | high << 4) - 32);
    const uint8_t* const codes = block + 8 + group * 16;
    for (int i = 0; i < kSmall; ++i)
      out[group * kSmall + i] = group_scale * static_cast<float>(kUnevenSteps[nibble(codes, i)]);
  }
}

/// The sixteen values of a number of four bits with two bits of exponent and one of mantissa, doubled.
constexpr float kDoubledE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// MXFP4: an exponent for 32 elements, then codes. Since the values are doubled, the exponent counts from
/// 128. The file's definition has no negative zero, and no exponent stands for NaN.
void dequantize_mxfp4(const uint8_t* block, float* out) {
  const uint32_t exponent = block[0];
  const uint32_t bits = exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23;
  const auto scale = std::bit_cast<float>(bits);
  for (int i = 0; i < kSmall; ++i) out[i] = scale * kDoubledE2m1[nibble(block + 1, i)];
}

/// Signs of eight elements as IQ2_XXS, IQ2_XS and IQ3_XXS store them: seven bits, and an eighth that makes
/// the number of negative elements even.
int eight_signs(uint32_t seven) {
  seven &= 127;
  return static_cast<int>(seven | static_cast<uint32_t>(std::popcount(seven) & 1) << 7);
}

float signed_by(int signs, int i, float value) {
  return (signs >> i & 1) != 0 ? -value : value;
}

/// The half of a byte that belongs to a group, the lower one for even groups.
float half_byte(const uint8_t* bytes, int group) {
  return static_cast<float>(bytes[group / 2] >> group % 2 * 4 & 15);
}

/// The scale of a group of IQ2_XXS, IQ2_XS and IQ2_S, exact but for the product.
float iq2_scale(float scale, float four_bits) {
  return scale * (0.5f + four_bits) * 0.25f;
}

/// Eight elements of the types IQ2: an entry of a codebook, with signs.
void dequantize_eight(uint32_t entry, int signs, float scale, float* out) {
  constexpr float kMagnitudes[4] = {8, 25, 43, 0};  // no entry has the last one
  for (int i = 0; i < 8; ++i) out[i] = signed_by(signs, i, scale * kMagnitudes[entry >> 2 * i & 3]);
}

/// IQ2_XXS: for 32 elements four indices of a byte each, then four times seven bits of signs, and a scale in
/// the upper four bits.
void dequantize_iq2_xxs(const uint8_t* block, float* out) {
  const float scale = load_half(block);
  for (int group = 0; group < kSuper / 32; ++group) {
    const uint8_t* const codes = block + 2 + group * 8;
    const uint32_t rest = load_u32(codes + 4);
    const float group_scale = iq2_scale(scale, static_cast<float>(rest >> 28));
    for (int i = 0; i < 4; ++i, out += 8) {
      dequantize_eight(kCodebookIQ2_XXS[codes[i]], eight_signs(rest >> 7 * i), group_scale, out);
    }
  }
}

/// IQ2_XS: for eight elements nine bits of index and seven of signs, then a scale of four bits for every 16.
void dequantize_iq2_xs(const uint8_t* block, float* out) {
  const float scale = load_half(block);
  for (int i = 0; i < kSuper / 8; ++i, out += 8) {
    const uint32_t code = load_u16(block + 2 + i * 2);
    const float group_scale = iq2_scale(scale, half_byte(block + 66, i / 2));
    dequantize_eight(kCodebookIQ2_XS[code & 511], eight_signs(code >> 9), group_scale, out);
  }
}

/// IQ2_S: for eight elements a byte of index, then a byte of signs, then two upper bits of index; a scale of
/// four bits for every 16.
void dequantize_iq2_s(const uint8_t* block, float* out) {
  const float scale = load_half(block);
  for (int i = 0; i < kSuper / 8; ++i, out += 8) {
    const int index = block[2 + i] | (block[66 + i / 4] >> i % 4 * 2 & 3) << 8;
    const float group_scale = iq2_scale(scale, half_byte(block + 74, i / 2));
    dequantize_eight(kCodebookIQ2_S[index], block[34 + i], group_scale, out);
  }
}

/// Four elements of the types IQ3: an entry of a codebook, with signs.
void dequantize_four(uint32_t entry, const float (&magnitudes)[8], int signs, float scale, float* out) {
  for (int i = 0; i < 4; ++i) out[i] = signed_by(signs, i, scale * magnitudes[entry >> 3 * i & 7]);
}

/// IQ3_XXS: a byte of index for four elements, then for 32 elements four times seven bits of signs, and a
/// scale in the upper four bits.
void dequantize_iq3_xxs(const uint8_t* block, float* out) {
  constexpr float kMagnitudes[8] = {4, 12, 20, 28, 36, 44, 52, 62};
  const float scale = load_half(block);
  for (int i = 0; i < kSuper / 4; ++i, out += 4) {
    const uint32_t rest = load_u32(block + 66 + i / 8 * 4);
    const float group_scale = scale * (0.5f + static_cast<float>(rest >> 28)) * 0.5f;
    const int signs = eight_signs(rest >> i % 8 / 2 * 7) >> i % 2 * 4;
    dequantize_four(kCodebookIQ3_XXS[block[2 + i]], kMagnitudes, signs, group_scale, out);
  }
}

/// IQ3_S: for four elements a byte of index, then a ninth bit, then four bits of signs; a scale of four bits
/// for every 32.
void dequantize_iq3_s(const uint8_t* block, float* out) {
  constexpr float kMagnitudes[8] = {1, 3, 5, 7, 9, 11, 13, 15};
  const float scale = load_half(block);
  for (int i = 0; i < kSuper / 4; ++i, out += 4) {
    const int index = block[2 + i] | (block[66 + i / 8] >> i % 8 & 1) << 8;
    const float group_scale = scale * (1.0f + 2.0f * half_byte(block + 106, i / 8));
    const int signs = block[74 + i / 2] >> i % 2 * 4;
    dequantize_four(kCodebookIQ3_S[index], kMagnitudes, signs, group_scale, out);
  }
}

}  // namespace

const BlockType* block_type(DType dtype) {
  static constexpr BlockType kQ4_0 = {32, 18, dequantize_codes<codes_of_q4_0>, codes_of_q4_0};
  static constexpr BlockType kQ4_1 = {32, 20, dequantize_q4_1};
  static constexpr BlockType kQ5_0 = {32, 22, dequantize_codes<codes_of_q5_0>, codes_of_q5_0};
  static constexpr BlockType kQ5_1 = {32, 24, dequantize_q5_1};
  static constexpr BlockType kQ8_0 = {32, 34, dequantize_codes<codes_of_q8_0>, codes_of_q8_0};
  static constexpr BlockType kQ2_K = {256, 84, dequantize_q2_k, nullptr, take_apart_q2_k, kBlockQ2};
  static constexpr BlockType kQ3_K = {256, 110, dequantize_q3_k, nullptr, take_apart_q3_k, kBlockQ3};
  static constexpr BlockType kQ4_K = {256, 144, dequantize_q4_k, nullptr, take_apart_q4_k, kBlockQ4};
  static constexpr BlockType kQ5_K = {256, 176, dequantize_q5_k, nullptr, take_apart_q5_k, kBlockQ5};
  static constexpr BlockType kQ6_K = {256, 210, dequantize_q6_k, nullptr, take_apart_q6_k, kBlockQ6};
  static constexpr BlockType kIQ2_XXS = {256, 66, dequantize_iq2_xxs};
  static constexpr BlockType kIQ2_XS = {256, 74, dequantize_iq2_xs};
  static constexpr BlockType kIQ2_S = {256, 82, dequantize_iq2_s};
  static constexpr BlockType kIQ3_XXS = {256, 98, dequantize_iq3_xxs};
  static constexpr BlockType kIQ3_S = {256, 110, dequantize_iq3_s};
  static constexpr BlockType kIQ4_NL = {32, 18, dequantize_codes<codes_of_iq4_nl>, codes_of_iq4_nl};
  static constexpr BlockType kIQ4_XS = {256, 136, dequantize_iq4_xs};
  static constexpr BlockType kMXFP4 = {32, 17, dequantize_mxfp4};
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kU8:
    case DType::kMXFP4Apart:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kGptq4:
    case DType::kGptq8:
    case DType::kAwq4:
    case DType::kPacked4:
    case DType::kPacked8:
    case DType::kI32:
    case DType::kI64:
      return nullptr;
    case DType::kQ4_0:
      return &kQ4_0;
    case DType::kQ4_1:
      return &kQ4_1;
    case DType::kQ5_0:
      return &kQ5_0;
    case DType::kQ5_1:
      return &kQ5_1;
    case DType::kQ8_0:
      return &kQ8_0;
    case DType::kQ2_K:
      return &kQ2_K;
    case DType::kQ3_K:
      return &kQ3_K;
    case DType::kQ4_K:
      return &kQ4_K;
    case DType::kQ5_K:
      return &kQ5_K;
    case DType::kQ6_K:
      return &kQ6_K;
    case DType::kIQ2_XXS:
      return &kIQ2_XXS;
    case DType::kIQ2_XS:
      return &kIQ2_XS;
    case DType::kIQ2_S:
      return &kIQ2_S;
    case DType::kIQ3_XXS:
      return &kIQ3_XXS;
    case DType::kIQ3_S:
      return &kIQ3_S;
    case DType::kIQ4_NL:
      return &kIQ4_NL;
    case DType::kIQ4_XS:
      return &kIQ4_XS;
    case DType::kMXFP4:
      return &kMXFP4;
  }
  return nullptr;
}

}  // namespace verbatim
