#include "text/character_map.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "character_table_support.h"
#include "text/normalizer.h"
#include "tokenizer_json_support.h"

namespace verbatim {
namespace {

using test::Json;

const std::map<std::string, std::string> kEntries = {{"ﬁ", "fi"}, {"\t", " "},   {"\r", " "},
                                                     {"é", "e"},  {"ab", "X"},   {"a\u0301", "á"},
                                                     {"①", "1"},  {"\u00ad", ""}};

std::string table() {
  return test::CharacterTable(kEntries).bytes();
}

/// What a text becomes in front of a model that only knows how to show characters.
std::string normalized(const std::string& bytes, const std::string& text) {
  Normalizer steps(1);
  steps[0].kind = NormalizerStep::Kind::kMapCharacters;
  steps[0].map = std::make_shared<const CharacterMap>(bytes, "test");
  return normalize(steps, text);
}

TEST(CharacterMap, FindsTheReplacementOfABeginning) {
  const CharacterMap map(table(), "test");
  EXPECT_EQ(map.find("ﬁ"), "fi");
  EXPECT_EQ(map.find("①②"), "1");
  EXPECT_EQ(map.find("\u00ad"), "");
  EXPECT_EQ(map.find("a"), std::nullopt);
  EXPECT_EQ(map.find("x"), std::nullopt);
  EXPECT_EQ(map.find(""), std::nullopt);
  EXPECT_EQ(map.find(std::string("\0", 1)), std::nullopt);
}

TEST(CharacterMap, CharactersAreReplacedWhereTheTableHasThem) {
  EXPECT_EQ(normalized(table(), "ﬁn ①\té x\u00ady"), "fin 1 e xy");
  EXPECT_EQ(normalized(table(), "plain"), "plain");
  EXPECT_EQ(normalized(table(), "a\u0301"), "á") << "what a user sees as one is looked up as a whole";
  EXPECT_EQ(normalized(table(), "a\u0302"), "a\u0302");
  EXPECT_EQ(normalized(table(), "é\u0302\u0302"), "e\u0302\u0302") << "six bytes are looked up one by one";
  EXPECT_EQ(normalized(table(), "a\r\nb"), "a b") << "a line's end is one";
  EXPECT_EQ(normalized(table(), "a\r\nß"), "a ß");
  EXPECT_EQ(normalized(table(), "ab"), "ab") << "two letters are two";
}

TEST(CharacterMap, TablesThatAreCutOffAreRefused) {
  const std::string good = table();
  for (const std::string& bytes :
       {std::string(), std::string("abc"), std::string(4, '\0'), good.substr(0, 100),
        std::string("\x05\0\0\0aaaaaaaa", 12), std::string("\xff\xff\xff\xff", 4) + good}) {
    EXPECT_NE(
        test::bad_input_message([&] { CharacterMap(bytes, "file"); }).find("file: the table of characters"),
        std::string::npos);
  }
  const auto message = test::bad_input_message([&] { CharacterMap(good + "\xff", "file"); });
  EXPECT_NE(message.find("not valid UTF-8"), std::string::npos);
}

TEST(CharacterMap, NoContentLeadsOutsideTheTableOrToHalfACharacter) {
  std::mt19937 random(3);
  const std::string good = table();
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = good;
    for (int change = 0; change < 20; ++change) bytes[4 + random() % 4096] = static_cast<char>(random());
    const std::string text = test::random_line(random) + "ﬁ①é";
    EXPECT_EQ(find_invalid_utf8(normalized(bytes, text)), std::string::npos);
  }
}

TEST(CharacterMap, ATableThatMakesTextsAbsurdlyLongIsStopped) {
  const std::string bytes = test::CharacterTable({{"a", std::string(1 << 20, 'x')}}).bytes();
  EXPECT_NE(
      test::bad_input_message([&] { normalized(bytes, std::string(1 << 20, 'a')); }).find("times longer"),
      std::string::npos);
}

TEST(CharacterMap, ATokenizerJsonHasItAsBase64) {
  Json json = test::words_json({"fi"});
  json["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", test::base64_text(table())}};
  EXPECT_EQ(test::load_json(json)->encode("ﬁ", {}), (std::vector<Token>{1}));
  for (const char* text : {"", "====", "abc", "a%cd", "AAAAA===", "AAAA"}) {
    json["normalizer"]["precompiled_charsmap"] = text;
    EXPECT_EQ(test::refusal(json).rfind("tokenizer.json: ", 0), 0u);
  }
  json["normalizer"].erase("precompiled_charsmap");
  EXPECT_NE(test::refusal(json).find("'precompiled_charsmap' is missing"), std::string::npos);
}

TEST(Base64, AllBytesComeBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(base64_bytes(test::base64_text(bytes)), bytes);
    bytes += static_cast<char>(255 - i);
  }
  EXPECT_EQ(base64_bytes("QQ="), std::nullopt);
  EXPECT_EQ(base64_bytes("Q==="), std::nullopt);
}

}  // namespace
}  // namespace verbatim
