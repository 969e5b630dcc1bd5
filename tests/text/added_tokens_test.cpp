#include "text/added_tokens.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

AddedToken token(const std::string& content, Token id) {
  AddedToken result;
  result.content = content;
  result.id = id;
  return result;
}

/// The segments of a text: plain ones as they are, tokens as their ids between braces.
std::string cut(const AddedTokens& tokens, const std::string& text) {
  std::string result;
  for (const TextSegment& segment : tokens.split(text, true)) {
    if (!result.empty()) result += '|';
    result += segment.token < 0 ? std::string(segment.text) : "{" + std::to_string(segment.token) + "}";
  }
  return result;
}

TEST(AddedTokens, TheLeftmostAndThenTheLongestIsFound) {
  AddedTokens tokens;
  tokens.add(token("ab", 1));
  tokens.add(token("abc", 2));
  tokens.add(token("bcd", 3));
  EXPECT_EQ(cut(tokens, "xabcdab"), "x|{2}|d|{1}");
  EXPECT_EQ(cut(tokens, "abd bcd"), "{1}|d |{3}");
}

TEST(AddedTokens, ASingleWordTouchesNoLetterDigitMarkOrUnderscore) {
  AddedTokens tokens;
  AddedToken word = token("ab", 1);
  word.single_word = true;
  tokens.add(word);
  for (const char* text : {"xab", "abx", "ab1", "_ab", "ab\u0301", "éab", "ab\u203f", "ab\u200d"}) {
    EXPECT_EQ(cut(tokens, text), text);
  }
  EXPECT_EQ(cut(tokens, "ab,ab-½ab²"), "{1}|,|{1}|-½|{1}|²");
}

TEST(AddedTokens, ASingleWordThatFailsHidesTheShorterOnesInIt) {
  AddedTokens tokens;
  AddedToken word = token("ab", 1);
  word.single_word = true;
  tokens.add(word);
  tokens.add(token("b", 2));
  tokens.add(token("a", 3));
  EXPECT_EQ(cut(tokens, "xabb"), "xab|{2}");
  EXPECT_EQ(cut(tokens, "xab b"), "xab |{2}");
}

TEST(AddedTokens, WhiteSpaceOnEitherSideMayBelongToAToken) {
  AddedTokens tokens;
  AddedToken left = token("<l>", 1);
  left.strip_left = true;
  AddedToken right = token("<r>", 2);
  right.strip_right = true;
  tokens.add(left);
  tokens.add(right);
  EXPECT_EQ(cut(tokens, "a \u2003<l> b"), "a|{1}| b");
  EXPECT_EQ(cut(tokens, "a <r>\n b"), "a |{2}|b");
  EXPECT_EQ(cut(tokens, "<r>  <l>"), "{2}|{1}");
}

}  // namespace
}  // namespace verbatim
