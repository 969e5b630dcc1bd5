#include <gtest/gtest.h>

#include "base/utf8.h"
#include "verbatim/text.h"

namespace verbatim {
namespace {

constexpr size_t kLong = 1000;

TEST(ShownText, KeepsEveryScript) {
  for (const char* text : {"", "plain", "naïve café", "日本語", "עברית", "🙂"}) {
    EXPECT_EQ(shown(text, kLong), text);
  }
}

TEST(ShownText, HasNoCharacterThatSteersATerminal) {
  EXPECT_EQ(shown("a\x1b[31mb", kLong), "a [31mb");
  EXPECT_EQ(shown("a\nb\tc\x7f", kLong), "a b c ");
  EXPECT_EQ(shown("a\xc2\x9b"
                  "b",
                  kLong),
            "a b");  // the second block's escape
  EXPECT_EQ(shown("a\xe2\x80\xae"
                  "b",
                  kLong),
            "a b");  // from right to left
  EXPECT_EQ(shown("a\xe2\x81\xa6"
                  "b",
                  kLong),
            "a b");  // an isolated run
}

TEST(ShownText, IsValidUtf8WhateverComesIn) {
  EXPECT_EQ(shown("caf\xe9", kLong), "caf\xef\xbf\xbd");
  EXPECT_EQ(shown("\xff\xfe", kLong), "\xef\xbf\xbd\xef\xbf\xbd");
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {'x', static_cast<char>(first), static_cast<char>(second), 'y'};
      EXPECT_EQ(find_invalid_utf8(shown(text, kLong)), std::string_view::npos) << first << " " << second;
    }
  }
}

TEST(ShownText, LosesItsMiddleWhereItIsLong) {
  const std::string text = std::string(5000, 'a') + "é" + std::string(5000, 'z');
  const std::string result = shown(text, 60);
  EXPECT_LE(result.size(), 60u + std::string_view(" ... ").size());
  EXPECT_TRUE(result.starts_with("aaa")) << result;
  EXPECT_TRUE(result.ends_with("zzz")) << result;
}

TEST(ShownText, IsCutBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "é";
  for (size_t longest = 10; longest < 30; ++longest) {
    const std::string result = shown(text, longest);
    EXPECT_EQ(find_invalid_utf8(result), std::string_view::npos);
    EXPECT_EQ(result.find("\xef\xbf\xbd"), std::string::npos) << longest;
  }
}

}  // namespace
}  // namespace verbatim
