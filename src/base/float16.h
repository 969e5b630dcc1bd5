#pragma once

#include <bit>
#include <cstdint>

namespace verbatim {

/// A bfloat16 number: the upper half of a float. Plain data, so arrays of it are read straight from files.
struct BFloat16 {
  uint16_t bits;
  friend bool operator==(BFloat16, BFloat16) = default;
};

/// An IEEE 754 binary16 number.
struct Float16 {
  uint16_t bits;
  friend bool operator==(Float16, Float16) = default;
};

// The conversions are always inlined: kernels of several instruction sets use them, and an out-of-line copy
// compiled for one of these must never be linked into another.

/// Converts to float, exactly.
[[gnu::always_inline]] constexpr inline float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

/// Rounds to the nearest BF16 number, ties to even. NaN stays NaN (made quiet); overflow becomes infinity.
[[gnu::always_inline]] constexpr inline BFloat16 to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

/// Converts to float, exactly.
[[gnu::always_inline]] constexpr inline float to_float(Float16 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t magnitude = value.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity or NaN; a NaN is made quiet as the hardware conversion does
    const uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | ((magnitude & 0x3ffu) << 13));
  }
  if (magnitude < 0x400u) {  // zero or subnormal: exact in float
    const float fraction = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(fraction) | sign);
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
}

/// Rounds to the nearest F16 number, subnormal ones included, ties to even. NaN stays NaN; overflow becomes
/// infinity.
[[gnu::always_inline]] constexpr inline Float16 to_float16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return {static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu))};
  }
  if (magnitude >= 0x47800000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // 65536 and above
  if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 aligns the mantissa and rounds to even
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(aligned) - 0x3f000000u))};
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  const uint32_t rounded = magnitude - (112u << 23) + 0xfffu + odd;
  return {static_cast<uint16_t>(sign | (rounded >> 13))};
}

}  // namespace verbatim
