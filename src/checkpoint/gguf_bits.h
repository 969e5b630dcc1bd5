#pragma once

#include <cstdint>

#include "base/float16.h"

namespace verbatim {

// How blocks of GGUF files are read: numbers are little-endian and lie at any address.

inline uint16_t load_u16(const uint8_t* from) {
  return static_cast<uint16_t>(from[0] | from[1] << 8);
}

inline uint32_t load_u32(const uint8_t* from) {
  return load_u16(from) | static_cast<uint32_t>(load_u16(from + 2)) << 16;
}

inline float load_half(const uint8_t* from) {
  return to_float(Float16{load_u16(from)});
}

/// The number of elements in a block of the "K" types and of most "IQ" types.
inline constexpr int kSuper = 256;

}  // namespace verbatim
