#include "text/normalizer.h"

#include <gtest/gtest.h>

#include "text/tokenizer_json_steps.h"
#include "tokenizer_json_support.h"

namespace verbatim {
namespace normalizer_test {
namespace {

std::string normalized(const char* step, const std::string& text) {
  const Json json = {{"normalizer", Json::parse(step)}};
  return normalize(parse_normalizer(json, "test"), text);
}

TEST(Normalizer, UnicodeForms) {
  EXPECT_EQ(normalized(R"({"type": "NFC"})", "e\u0301"), "é");
  EXPECT_EQ(normalized(R"({"type": "NFD"})", "é"), "e\u0301");
  EXPECT_EQ(normalized(R"({"type": "NFKC"})", "ﬁ①é"), "fi1é");
  EXPECT_EQ(normalized(R"({"type": "NFKD"})", "ﬁé"), "fie\u0301");
}

TEST(Normalizer, LowercaseTakesEachCharacterByItself) {
  EXPECT_EQ(normalized(R"({"type": "Lowercase"})", "HÉLLO ΣΑΣ İ ẞ"), "héllo σασ i\u0307 ß");
}

TEST(Normalizer, StripRemovesWhiteSpaceAtTheEnds) {
  EXPECT_EQ(normalized(R"({"type": "Strip"})", "\u00a0 a b\t\u3000"), "a b");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": false})", " a "), " a");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_right": false})", " a "), "a ");
}

TEST(Normalizer, StripAccentsRemovesCombiningMarksAndNothingElse) {
  // U+0903 is a mark that takes space.
  EXPECT_EQ(normalized(R"({"type": "StripAccents"})", "e\u0301 é \u0915\u0903"), "e é \u0915");
}

TEST(Normalizer, BertCleansSpacesIdeographsAndLowersCase) {
  EXPECT_EQ(normalized(R"({"type": "BertNormalizer"})", "A\u0001\u200dB\tÉ\u0903中x\ufffd\u2028"),
            "ab e\u0903 中 x ");
  EXPECT_EQ(normalized(R"({"type": "BertNormalizer", "lowercase": false})", "ÉA"), "ÉA")
      << "accents stay where case does";
  EXPECT_EQ(normalized(R"({"type": "BertNormalizer", "lowercase": false, "strip_accents": true})", "ÉA"),
            "EA");
  EXPECT_EQ(normalized(R"({"type": "BertNormalizer", "strip_accents": false})", "ÉA"), "éa");
  EXPECT_EQ(normalized(R"({"type": "BertNormalizer", "clean_text": false, "handle_chinese_chars": false})",
                       "A\u0001\t中"),
            "a\u0001\t中");
  EXPECT_EQ(normalized(R"({"type": "BertNormalizer"})", "\u000b\u0085\u00a0x"), " x")
      << "control characters go, though Unicode calls some white space";
}

TEST(Normalizer, NmtTreatsControlsAndSpacesAsSentencePieceDoes) {
  EXPECT_EQ(normalized(R"({"type": "Nmt"})", "a\u0001\u007f\u000bb\tc\nd\u200be\u2581f\ufeff"),
            "ab c d e f ");
  EXPECT_EQ(normalized(R"({"type": "Nmt"})", "\u0080\u00a0"), "\u0080\u00a0");
}

TEST(Normalizer, ByteLevelWritesBytesAsCharacters) {
  EXPECT_EQ(normalized(R"({"type": "ByteLevel"})", "a é"), "aĠÃ©");
}

TEST(Normalizer, ReplacePrependAndSequencesInOrder) {
  EXPECT_EQ(normalized(R"({"type": "Sequence", "normalizers": [
    {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"Regex": "▁{2,}"}, "content": "_"}]}]})",
                       "a  b c"),
            "▁a_b▁c");
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "▁"})", ""), "");
}

TEST(Normalizer, WhatMakesATextAbsurdlyLongIsStopped) {
  std::string step = R"({"type": "Sequence", "normalizers": [)";
  for (int i = 0; i < 40; ++i) {
    step += R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaa"},)";
  }
  step += R"({"type": "NFC"}]})";
  const auto message = test::bad_input_message([&] { normalized(step.c_str(), std::string(100'000, 'a')); });
  EXPECT_NE(message.find("normalizer makes the text more than 64 times longer"), std::string::npos);
}

TEST(Normalizer, UnknownOnesAreRefusedByName) {
  const auto message = test::bad_input_message([&] { normalized(R"({"type": "Transliterate"})", "a"); });
  EXPECT_NE(message.find("the normalizer 'Transliterate' is not supported"), std::string::npos);
  test::bad_input_message([&] { normalized(R"({"type": "BertNormalizer", "lowercase": 1})", "a"); });
}

}  // namespace
}  // namespace normalizer_test
}  // namespace verbatim
