#include "text/added_tokens.h"

#include <gtest/gtest.h>

#include "tokenizer_support.h"

namespace verbatim {
namespace {

AddedToken token(const std::string& content, Token id) {
  AddedToken result;
  result.content = content;
  result.id = id;
  return result;
}

void add(AddedToken token, AddedTokens& tokens) {
  tokens.add(std::move(token), "the vocabulary");
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
  add(token("ab", 1), tokens);
  add(token("abc", 2), tokens);
  add(token("bcd", 3), tokens);
  EXPECT_EQ(cut(tokens, "xabcdab"), "x|{2}|d|{1}");
  EXPECT_EQ(cut(tokens, "abd bcd"), "{1}|d |{3}");
}

TEST(AddedTokens, WhereTheLongestIsHiddenTheLongestOfTheOthersIsFound) {
  AddedTokens tokens;
  add(token("ab", 1), tokens);
  add(token("abc", 2), tokens);
  for (const char* content : {"a", "abcd"}) {
    AddedToken special = token(content, 3);
    special.special = true;
    add(special, tokens);
  }
  const auto first_of = [&](bool special, const std::vector<ByteRange>& within) {
    return tokens.split("abcde", special, &within)[0].token;
  };
  EXPECT_EQ(first_of(true, {{0, 4}}), 3);
  EXPECT_EQ(first_of(true, {{0, 3}}), 2);
  EXPECT_EQ(first_of(false, {{0, 4}}), 2);
}

TEST(AddedTokens, ALaterOneReplacesAnEarlierOneOfTheSameContent) {
  AddedTokens tokens;
  add(token("ab", 1), tokens);
  add(token("ab", 2), tokens);
  EXPECT_EQ(cut(tokens, "abc"), "{2}|c");
}

// Looking at every token at every place of the text would take minutes.
TEST(AddedTokens, FiftyThousandWithTheSameBeginningAreFoundAmongEachOther) {
  constexpr Token kCount = 50'000;
  AddedTokens tokens;
  for (Token id = 0; id < kCount; ++id) add(token("a" + std::to_string(id), id), tokens);
  std::string text;
  std::vector<Token> expected;
  for (Token id = 0; id < kCount; ++id) {
    text += "a" + std::to_string(id) + 'a';
    expected.insert(expected.end(), {id, -1});
  }
  std::vector<Token> found;
  for (const TextSegment& segment : tokens.split(text, true)) found.push_back(segment.token);
  EXPECT_EQ(found, expected);
}

TEST(AddedTokens, AbsurdlyLongOnesAreRefused) {
  AddedTokens tokens;
  add(token(std::string(1024, 'a'), 7), tokens);
  EXPECT_EQ(cut(tokens, std::string(1025, 'a')), "{7}|a");
  const auto message = test::bad_input_message([&] { add(token(std::string(1025, 'a'), 7), tokens); });
  EXPECT_NE(message.find("the vocabulary: the added token 7 has 1025 bytes"), std::string::npos) << message;
}

TEST(AddedTokens, ASingleWordTouchesNoLetterDigitMarkOrUnderscore) {
  AddedTokens tokens;
  AddedToken word = token("ab", 1);
  word.single_word = true;
  add(word, tokens);
  for (const char* text : {"xab", "abx", "ab1", "_ab", "ab\u0301", "éab", "ab\u203f", "ab\u200d"}) {
    EXPECT_EQ(cut(tokens, text), text);
  }
  EXPECT_EQ(cut(tokens, "ab,ab-½ab²"), "{1}|,|{1}|-½|{1}|²");
}

TEST(AddedTokens, ASingleWordThatFailsHidesTheShorterOnesInIt) {
  AddedTokens tokens;
  AddedToken word = token("ab", 1);
  word.single_word = true;
  add(word, tokens);
  add(token("b", 2), tokens);
  add(token("a", 3), tokens);
  EXPECT_EQ(cut(tokens, "xabb"), "xab|{2}");
  EXPECT_EQ(cut(tokens, "xab b"), "xab |{2}");
}

TEST(AddedTokens, WhiteSpaceOnEitherSideMayBelongToAToken) {
  AddedTokens tokens;
  AddedToken left = token("<l>", 1);
  left.strip_left = true;
  AddedToken right = token("<r>", 2);
  right.strip_right = true;
  add(left, tokens);
  add(right, tokens);
  EXPECT_EQ(cut(tokens, "a \u2003<l> b"), "a|{1}| b");
  EXPECT_EQ(cut(tokens, "a <r>\n b"), "a |{2}|b");
  EXPECT_EQ(cut(tokens, "<r>  <l>"), "{2}|{1}");
}

}  // namespace
}  // namespace verbatim
