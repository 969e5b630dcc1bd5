#pragma once

#include <cstdint>
#include <optional>

namespace verbatim::accelerator {

/// A weight as SPEQ stores it (III-B, figure 3): an FP16 whose magnitude is below 2, in 4 + 12 bits.
struct StoredWeight {
  uint8_t q = 0;   ///< Wq: the sign in bit 3, and the code c
  uint16_t r = 0;  ///< Wr: the flag in bit 11, the lowest bit of the exponent in bit 10, the mantissa

  bool operator==(const StoredWeight&) const = default;
};

/// Codes an FP16. Nothing for magnitudes of 2 and more, infinities and NaN: their exponents have five bits.
std::optional<StoredWeight> encode(uint16_t fp16);

/// The decoder of quantize mode (figure 5a): the exponent of a draft, 4 bits, from the code.
uint8_t draft_exponent(uint8_t code);
/// The decoder of full mode (figure 5b): the exponent of a weight, 4 bits, from code, flag and lowest bit.
/// The paper appends bit 0 of Wr's exponent, which is the flag; figure 3 has the lowest bit there, as here.
uint8_t full_exponent(uint8_t code, bool flag, bool lowest);

/// The weight's sign, exponent and mantissa as the PEs take it: S1E4M10 in the low 15 bits.
uint16_t full_weight(const StoredWeight& stored);
/// The draft's sign and exponent as the PEs take it: S1E4 in the low 5 bits. Its value is 2^(exponent - 15).
uint8_t draft_weight(const StoredWeight& stored);

/// An S1E4M10 as FP16: an exponent bit of 0 is put in.
uint16_t as_fp16(uint16_t weight);

}  // namespace verbatim::accelerator
