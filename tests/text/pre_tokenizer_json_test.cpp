#include <gtest/gtest.h>

#include "text/tokenizer_json_steps.h"
#include "tokenizer_json_support.h"

namespace verbatim {
namespace pre_tokenizer_json_test {
namespace {

using Words = std::vector<std::string>;

Words words_of(const char* step, const std::string& text) {
  const Json json = {{"pre_tokenizer", Json::parse(step)}};
  const PreTokens tokens = pre_tokenize(parse_pre_tokenizer(json, "test"), text, true);
  Words words;
  for (const TextRange& range : tokens.ranges) {
    words.push_back(tokens.text.substr(range.begin, range.end - range.begin));
  }
  return words;
}

std::string refused(const char* step) {
  return test::bad_input_message([&] { words_of(step, "a"); });
}

TEST(PreTokenizerJson, BertCutsAtWhiteSpaceAndPunctuation) {
  EXPECT_EQ(words_of(R"({"type": "BertPreTokenizer"})", "Hey  friend!\u00a0How-are\u3000you?!"),
            (Words{"Hey", "friend", "!", "How", "-", "are", "you", "?", "!"}));
  EXPECT_EQ(words_of(R"({"type": "BertPreTokenizer"})", "野口 5$ «a»"),
            (Words{"野口", "5", "$", "«", "a", "»"}));
}

TEST(PreTokenizerJson, PunctuationInEveryBehavior) {
  const std::string text = "a,.b";
  const auto with = [&](const std::string& behavior) {
    return words_of((R"({"type": "Punctuation", "behavior": ")" + behavior + "\"}").c_str(), text);
  };
  EXPECT_EQ(words_of(R"({"type": "Punctuation"})", text), (Words{"a", ",", ".", "b"}));
  EXPECT_EQ(with("Isolated"), (Words{"a", ",", ".", "b"}));
  EXPECT_EQ(with("Removed"), (Words{"a", "b"}));
  EXPECT_EQ(with("MergedWithPrevious"), (Words{"a,", ".", "b"}));
  EXPECT_EQ(with("MergedWithNext"), (Words{"a", ",", ".b"}));
  EXPECT_EQ(with("Contiguous"), (Words{"a", ",.", "b"}));
}

TEST(PreTokenizerJson, WhitespaceCutsWordsFromTheRest) {
  EXPECT_EQ(words_of(R"({"type": "Whitespace"})", "Hey man! It's"),
            (Words{"Hey", "man", "!", "It", "'", "s"}));
  EXPECT_EQ(words_of(R"({"type": "Whitespace"})", "हिन्दी ½x Ⓐb"), (Words{"हिन्दी", "½", "x", "Ⓐb"}))
      << "marks belong to words, fractions do not";
  EXPECT_EQ(words_of(R"({"type": "WhitespaceSplit"})", " Hey,\u2003man!\n"), (Words{"Hey,", "man!"}));
  EXPECT_EQ(words_of(R"({"type": "WhitespaceSplit"})", "a\u180eb"), (Words{"a\u180eb"}));
}

TEST(PreTokenizerJson, DigitsAloneOrTogether) {
  EXPECT_EQ(words_of(R"({"type": "Digits", "individual_digits": true})", "a12b½"),
            (Words{"a", "1", "2", "b", "½"}));
  EXPECT_EQ(words_of(R"({"type": "Digits", "individual_digits": false})", "a12b"), (Words{"a", "12", "b"}));
}

TEST(PreTokenizerJson, ACharacterMayBeTheDelimiter) {
  EXPECT_EQ(words_of(R"({"type": "CharDelimiterSplit", "delimiter": "-"})", "the-big--x"),
            (Words{"the", "big", "x"}));
  EXPECT_EQ(words_of(R"({"type": "CharDelimiterSplit", "delimiter": "·"})", "a·b"), (Words{"a", "b"}));
  EXPECT_NE(refused(R"({"type": "CharDelimiterSplit", "delimiter": "ab"})").find("single character"),
            std::string::npos);
  EXPECT_NE(refused(R"({"type": "CharDelimiterSplit", "delimiter": ""})").find("single character"),
            std::string::npos);
  EXPECT_NE(refused(R"({"type": "CharDelimiterSplit"})").find("'delimiter' is missing"), std::string::npos);
}

TEST(PreTokenizerJson, ScriptsAreCutApart) {
  EXPECT_EQ(words_of(R"({"type": "UnicodeScripts"})", "どこで生れ。Yes"), (Words{"どこで生れ", "。", "Yes"}));
  EXPECT_EQ(words_of(R"({"type": "UnicodeScripts"})", "Apples are りんご 林檎"),
            (Words{"Apples are ", "りんご 林檎"}));
  EXPECT_EQ(words_of(R"({"type": "UnicodeScripts"})", "  a1"), (Words{"a", "1"})) << "spaces at the start go";
  EXPECT_EQ(words_of(R"({"type": "UnicodeScripts"})", "  "), Words());
}

TEST(PreTokenizerJson, PiecesOfFixedLength) {
  EXPECT_EQ(words_of(R"({"type": "FixedLength", "length": 3})", "Hello 👋 é"), (Words{"Hel", "lo ", "👋 é"}));
  EXPECT_EQ(words_of(R"({"type": "FixedLength"})", "Hello w"), (Words{"Hello", " w"}));
  EXPECT_NE(refused(R"({"type": "FixedLength", "length": 0})").find("is 0"), std::string::npos);
  EXPECT_NE(refused(R"({"type": "FixedLength", "length": -1})").find("count"), std::string::npos);
}

TEST(PreTokenizerJson, ByteLevelMayBeFollowedByOthers) {
  EXPECT_EQ(words_of(R"({"type": "Sequence", "pretokenizers": [
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    {"type": "Split", "pattern": {"Regex": "[0-9][0-9]"}, "behavior": "Isolated"}]})",
                     "é 1234"),
            (Words{"Ã©", "Ġ", "12", "34"}));
  EXPECT_NE(
      refused(R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "ByteLevel"}]})")
          .find("stands twice"),
      std::string::npos);
}

TEST(PreTokenizerJson, MetaspaceTakesOneCharacterAndAKnownScheme) {
  EXPECT_EQ(words_of(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "always"})", "a  b"),
            (Words{"_a", "_", "_b"}));
  EXPECT_EQ(
      words_of(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never", "split": false})",
               "a b"),
      (Words{"a_b"}));
  EXPECT_NE(refused(R"({"type": "Metaspace", "replacement": "ab"})").find("single character"),
            std::string::npos);
  EXPECT_NE(refused(R"({"type": "Metaspace", "prepend_scheme": "last"})").find("'last' does not exist"),
            std::string::npos);
}

TEST(PreTokenizerJson, StepsThatDoubleATextTooOftenAreStopped) {
  std::string steps = R"({"type": "Sequence", "pretokenizers": [)";
  for (int i = 0; i < 30; ++i) {
    steps +=
        R"({"type": "FixedLength", "length": 1}, {"type": "Metaspace", "split": false, "replacement": ")";
    steps += std::string(1, static_cast<char>('A' + i % 26)) + "\"},";
  }
  steps += R"({"type": "Digits"}]})";
  const auto message = test::bad_input_message([&] { words_of(steps.c_str(), "some text"); });
  EXPECT_NE(message.find("pre-tokenizer makes the text more than 64 times longer"), std::string::npos);
}

TEST(PreTokenizerJson, UnknownOnesAreRefusedByName) {
  EXPECT_NE(refused(R"({"type": "Chunks"})").find("the pre-tokenizer 'Chunks' is not supported"),
            std::string::npos);
}

}  // namespace
}  // namespace pre_tokenizer_json_test
}  // namespace verbatim
