#pragma once

#include <algorithm>
#include <cmath>

#include "checkpoint/gguf_codebooks.h"
#include "checkpoint/written_block.h"

namespace verbatim::test {

/// Seven bits of signs, and whether the eighth of eight elements is negative: the number of negative ones is
/// even.
inline std::vector<bool> signs_of_seven(uint32_t seven) {
  std::vector<bool> negative;
  for (int i = 0; i < 7; ++i) negative.push_back((seven >> i & 1) != 0);
  negative.push_back(std::count(negative.begin(), negative.end(), true) % 2 == 1);
  return negative;
}

inline float magnitude(uint32_t entry, int i, bool iq3_s) {
  constexpr float kOfEight[] = {4, 12, 20, 28, 36, 44, 52, 62};
  const uint32_t digit = entry / static_cast<uint32_t>(std::pow(8, i)) % 8;
  return iq3_s ? 2 * number(digit) + 1 : kOfEight[digit];
}

inline float magnitude_of_three(uint32_t entry, int i) {
  constexpr float kOfThree[] = {8, 25, 43};
  return kOfThree[entry / static_cast<uint32_t>(std::pow(4, i)) % 4];
}

/// Puts a number of 32 bits at a byte.
inline void put_word(Block& block, size_t byte, uint32_t word) {
  for (size_t i = 0; i < 4; ++i) block.put(byte + i, 0, 8, word >> 8 * i & 255);
}

inline Block iq2_xxs(Chooser& choose) {
  Block block(DType::kIQ2_XXS);
  const float scale = choose.half();
  block.put_half(0, scale);
  for (size_t group = 0; group < 8; ++group) {
    const uint32_t s = choose.below(16);
    uint32_t word = s << 28;
    for (size_t eight = 0; eight < 4; ++eight) {
      const uint32_t index = choose.below(256);
      const uint32_t seven = choose.below(128);
      block.put(2 + group * 8 + eight, 0, 8, index);
      word |= seven << 7 * eight;
      const std::vector<bool> negative = signs_of_seven(seven);
      for (int i = 0; i < 8; ++i) {
        const float value = scale * (number(s) + 0.5f) / 4 * magnitude_of_three(kCodebookIQ2_XXS[index], i);
        block.values[group * 32 + eight * 8 + static_cast<size_t>(i)] =
            negative[static_cast<size_t>(i)] ? -value : value;
      }
    }
    put_word(block, 2 + group * 8 + 4, word);
  }
  return block;
}

inline Block iq2_xs(Chooser& choose) {
  Block block(DType::kIQ2_XS);
  const float scale = choose.half();
  block.put_half(0, scale);
  for (size_t sixteen = 0; sixteen < 16; ++sixteen) {
    const uint32_t s = choose.below(16);
    block.put(66 + sixteen / 2, sixteen % 2 == 0 ? 0 : 4, 4, s);
    for (size_t eight = sixteen * 2; eight < sixteen * 2 + 2; ++eight) {
      const uint32_t code = choose.below(512) | choose.below(128) << 9;
      block.put(2 + eight * 2, 0, 8, code & 255);
      block.put(3 + eight * 2, 0, 8, code >> 8);
      const std::vector<bool> negative = signs_of_seven(code >> 9);
      for (int i = 0; i < 8; ++i) {
        const float value =
            scale * (number(s) + 0.5f) / 4 * magnitude_of_three(kCodebookIQ2_XS[code & 511], i);
        block.values[eight * 8 + static_cast<size_t>(i)] = negative[static_cast<size_t>(i)] ? -value : value;
      }
    }
  }
  return block;
}

inline Block iq2_s(Chooser& choose) {
  Block block(DType::kIQ2_S);
  const float scale = choose.half();
  block.put_half(0, scale);
  for (size_t sixteen = 0; sixteen < 16; ++sixteen) {
    const uint32_t s = choose.below(16);
    block.put(74 + sixteen / 2, sixteen % 2 == 0 ? 0 : 4, 4, s);
    for (size_t eight = sixteen * 2; eight < sixteen * 2 + 2; ++eight) {
      const uint32_t index = choose.below(1024);
      const uint32_t signs = choose.below(256);
      block.put(2 + eight, 0, 8, index & 255);
      block.put(34 + eight, 0, 8, signs);
      block.put(66 + eight / 4, static_cast<int>(eight % 4 * 2), 2, index >> 8);
      for (int i = 0; i < 8; ++i) {
        const float value = scale * (number(s) + 0.5f) / 4 * magnitude_of_three(kCodebookIQ2_S[index], i);
        block.values[eight * 8 + static_cast<size_t>(i)] = (signs >> i & 1) != 0 ? -value : value;
      }
    }
  }
  return block;
}

inline Block iq3_xxs(Chooser& choose) {
  Block block(DType::kIQ3_XXS);
  const float scale = choose.half();
  block.put_half(0, scale);
  for (size_t group = 0; group < 8; ++group) {
    const uint32_t s = choose.below(16);
    uint32_t word = s << 28;
    for (size_t eight = 0; eight < 4; ++eight) {
      const uint32_t seven = choose.below(128);
      word |= seven << 7 * eight;
      const std::vector<bool> negative = signs_of_seven(seven);
      for (size_t four = 0; four < 2; ++four) {
        const uint32_t index = choose.below(256);
        block.put(2 + group * 8 + eight * 2 + four, 0, 8, index);
        for (int i = 0; i < 4; ++i) {
          const size_t within = four * 4 + static_cast<size_t>(i);
          const float value = scale * (number(s) + 0.5f) / 2 * magnitude(kCodebookIQ3_XXS[index], i, false);
          block.values[group * 32 + eight * 8 + within] = negative[within] ? -value : value;
        }
      }
    }
    put_word(block, 66 + group * 4, word);
  }
  return block;
}

inline Block iq3_s(Chooser& choose) {
  Block block(DType::kIQ3_S);
  const float scale = choose.half();
  block.put_half(0, scale);
  for (size_t group = 0; group < 8; ++group) {
    const uint32_t s = choose.below(16);
    block.put(106 + group / 2, group % 2 == 0 ? 0 : 4, 4, s);
    for (size_t four = group * 8; four < group * 8 + 8; ++four) {
      const uint32_t index = choose.below(512);
      const uint32_t signs = choose.below(16);
      block.put(2 + four, 0, 8, index & 255);
      block.put(66 + group, static_cast<int>(four % 8), 1, index >> 8);
      block.put(74 + four / 2, four % 2 == 0 ? 0 : 4, 4, signs);
      for (int i = 0; i < 4; ++i) {
        const float value = scale * (2 * number(s) + 1) * magnitude(kCodebookIQ3_S[index], i, true);
        block.values[four * 4 + static_cast<size_t>(i)] = (signs >> i & 1) != 0 ? -value : value;
      }
    }
  }
  return block;
}

}  // namespace verbatim::test
