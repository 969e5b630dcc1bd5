#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "base/float16.h"
#include "checkpoint/gguf_blocks.h"

namespace verbatim::test {

// In tests blocks are written from chosen scales and codes, bit by bit, in the order in which the format's
// definition numbers them; what is read must be the value that the definition gives for these.

/// A block that is being written, and the values that must be read from it.
struct Block {
  std::vector<uint8_t> bytes;
  std::vector<float> values;

  explicit Block(DType dtype) : bytes(block_type(dtype)->bytes), values(block_type(dtype)->elements) {}

  /// Puts `count` bits of a number at a byte, from the given bit on.
  void put(size_t byte, int bit, int count, uint32_t number) {
    ASSERT_LE(bit + count, 8);
    ASSERT_LT(number, 1u << count);
    bytes.at(byte) |= static_cast<uint8_t>(number << bit);
  }
  void put_half(size_t byte, float value) {
    const uint16_t bits = to_float16(value).bits;
    put(byte, 0, 8, bits & 255);
    put(byte + 1, 0, 8, bits >> 8);
  }
};

/// Chooses codes: the least, the greatest, or any.
class Chooser {
 public:
  Chooser(int mode, uint32_t seed) : mode_(mode), generator_(seed) {}
  uint32_t below(uint32_t limit) {
    return mode_ == 0 ? 0 : mode_ == 1 ? limit - 1 : static_cast<uint32_t>(generator_() % limit);
  }
  /// An F16 number; large, small and negative ones too.
  float half() {
    constexpr float kHalves[] = {0.37f, 0x1p-24f, -3.0f, 60000.0f, 0.0f, -0x1.8p-15f, 1.0f};
    return to_float(to_float16(kHalves[generator_() % 7]));
  }

 private:
  int mode_;
  std::mt19937 generator_;
};

inline float number(uint32_t code, int offset = 0) {
  return static_cast<float>(static_cast<int>(code) + offset);
}

}  // namespace verbatim::test
