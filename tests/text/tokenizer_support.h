#pragma once

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "support/test_data.h"
#include "text/tokenizer.h"
#include "verbatim/error.h"

namespace verbatim::test {

inline constexpr Tokenizer::EncodeOptions kPlainText = {.add_bos = false, .parse_special = false};
inline constexpr Tokenizer::EncodeOptions kWithoutBos = {.add_bos = false, .parse_special = true};

inline std::vector<std::string> split_at(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t at; (at = text.find(separator, begin)) != std::string::npos; begin = at + separator.size()) {
    parts.push_back(text.substr(begin, at - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

inline void append_utf8(uint32_t c, std::string& text) {
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xC0 | c >> 6);
    text += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    text += static_cast<char>(0xE0 | c >> 12);
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | c >> 18);
    text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (c & 0x3F));
  }
}

/// A line of random valid UTF-8: runs of characters from one script or class at a time, as real text has
/// them. Never holds U+2581, which SentencePiece cannot tell from a space.
inline std::string random_line(std::mt19937& random, size_t longest = 60) {
  static constexpr std::array<std::array<uint32_t, 2>, 14> kRanges = {{{'a', 'z'},
                                                                       {'A', 'Z'},
                                                                       {'0', '9'},
                                                                       {0x20, 0x7E},
                                                                       {0xA0, 0x17F},
                                                                       {0x300, 0x36F},
                                                                       {0x400, 0x45F},
                                                                       {0x3040, 0x30FF},
                                                                       {0x4E00, 0x9FFF},
                                                                       {0xAC00, 0xD7A3},
                                                                       {0x1F300, 0x1F64F},
                                                                       {0x01, 0x1F},
                                                                       {0x2000, 0x206F},
                                                                       {0xE000, 0x10FFFF}}};
  const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  std::string line;
  const uint32_t characters = below(static_cast<uint32_t>(longest)) + 1;
  for (uint32_t written = 0; written < characters;) {
    const uint32_t run = below(8) + 1;
    const uint32_t kind = below(kRanges.size() + 4);
    for (uint32_t i = 0; i < run; ++i, ++written) {
      if (kind >= kRanges.size()) {
        line += "  \t\n"[below(4)];
      } else {
        append_utf8(kRanges[kind][0] + below(kRanges[kind][1] - kRanges[kind][0] + 1), line);
      }
    }
    if (below(2) == 0) line += ' ';
  }
  return line;
}

/// The message of the bad-input error that `action` throws; fails the test if it throws none or another.
template <typename Action>
std::string bad_input_message(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
    EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

}  // namespace verbatim::test
