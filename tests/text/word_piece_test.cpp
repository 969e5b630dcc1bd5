#include <gtest/gtest.h>

#include "text/detokenizer.h"
#include "tokenizer_json_support.h"

namespace verbatim {
namespace word_piece_test {
namespace {

using test::Json;
using Tokens = std::vector<Token>;

/// A vocabulary like BERT's.
Json bert() {
  return Json::parse(R"({
    "added_tokens": [{"id": 0, "content": "[PAD]", "special": true}, {"id": 1, "content": "[UNK]", "special": true},
      {"id": 2, "content": "[CLS]", "special": true}, {"id": 3, "content": "[SEP]", "special": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
      "strip_accents": null, "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "[SEP]", "type_id": 0}}], "pair": [],
      "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
        "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
      "max_input_chars_per_word": 10, "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "un": 4,
      "##aff": 5, "##able": 6, "affable": 7, "##a": 8, ".": 9, "中": 10, "cafe": 11, "unaff": 12, "don": 13,
      "'": 14, "t": 15, "##": 16, "#": 17, "##中": 18}}})");
}

TEST(WordPiece, TheLongestTokenThatFitsComesFirst) {
  const auto tokenizer = test::load_json(bert());
  EXPECT_EQ(tokenizer->encode("unaffable", test::kWithoutBos), (Tokens{12, 6}));
  EXPECT_EQ(tokenizer->encode("unaa affable", test::kWithoutBos), (Tokens{4, 8, 8, 7}));
  EXPECT_EQ(tokenizer->kind(), "wordpiece");
}

TEST(WordPiece, AWordThatCannotBeCutIsUnknownAsAWhole) {
  const auto tokenizer = test::load_json(bert());
  EXPECT_EQ(tokenizer->encode("unaffx un", test::kWithoutBos), (Tokens{1, 4}));
  EXPECT_EQ(tokenizer->encode("able", test::kWithoutBos), (Tokens{1})) << "only within a word";
  // Greedy: "unaff" is taken, whatever is left.
  EXPECT_EQ(tokenizer->encode("unaffaff", test::kWithoutBos), (Tokens{12, 5}));
}

TEST(WordPiece, AWordWithTooManyCharactersIsUnknown) {
  const auto tokenizer = test::load_json(bert());
  EXPECT_EQ(tokenizer->encode("unaaaaaaaa", test::kWithoutBos).size(), 9u);
  EXPECT_EQ(tokenizer->encode("unaaaaaaaaa", test::kWithoutBos), (Tokens{1}));
  Json json = bert();
  json["normalizer"] = nullptr;
  json["pre_tokenizer"] = nullptr;
  const std::string ten = "中中中中中中中中中中";
  EXPECT_EQ(test::load_json(json)->encode(ten, test::kWithoutBos).size(), 10u)
      << "characters count, not bytes";
  json["model"].erase("max_input_chars_per_word");
  const auto standard = test::load_json(json);
  EXPECT_EQ(standard->encode("un" + std::string(98, 'a'), test::kWithoutBos).size(), 99u);
  EXPECT_EQ(standard->encode("un" + std::string(99, 'a'), test::kWithoutBos), (Tokens{1}));
}

TEST(WordPiece, TextIsCleanedCutAndFramedAsBertDoes) {
  const auto tokenizer = test::load_json(bert());
  EXPECT_EQ(tokenizer->encode("Un\u200daffable. CAFÉ中中", {.add_end = true}),
            (Tokens{2, 12, 6, 9, 11, 10, 10, 3}));
  EXPECT_EQ(tokenizer->encode("don't", {}), (Tokens{2, 13, 14, 15}));
  EXPECT_EQ(tokenizer->encode("un [SEP]un", {}), (Tokens{2, 4, 3, 4}));
  EXPECT_EQ(tokenizer->encode("", {.add_end = true}), (Tokens{2, 3}));
}

TEST(WordPiece, DecodingPutsSpacesBetweenWordsAndCleansUp) {
  const auto tokenizer = test::load_json(bert());
  EXPECT_EQ(tokenizer->decode({2, 12, 6, 9, 11, 3}), "unaffable. cafe");
  EXPECT_EQ(tokenizer->decode({6, 4}), "##able un") << "nothing is taken from the first token";
  Json json = bert();
  json["decoder"]["cleanup"] = false;
  EXPECT_EQ(test::load_json(json)->decode({12, 9, 11}), "unaff . cafe");
  json["decoder"]["prefix"] = "un";
  EXPECT_EQ(test::load_json(json)->decode({11, 12}), "cafeaff");
}

TEST(WordPiece, StreamingGivesTheSameText) {
  const auto tokenizer = test::load_json(bert());
  StreamingDetokenizer stream(*tokenizer, true);
  EXPECT_EQ(stream.push(2), "");
  EXPECT_EQ(stream.push(4), "un");
  EXPECT_EQ(stream.push(6), "able");
  EXPECT_EQ(stream.push(9), ".");
  EXPECT_EQ(stream.push(11), " cafe");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(StreamingDetokenizer(*tokenizer, false).push(4), " un");
}

TEST(WordPiece, ALongWordTakesTimeInProportion) {
  Json json = bert();
  json["model"]["max_input_chars_per_word"] = 1ull << 60;
  json["model"]["vocab"]["##" + std::string(1000, 'a')] = 19;
  const auto tokenizer = test::load_json(json);
  EXPECT_EQ(tokenizer->encode("un" + std::string(1'000'000, 'a'), test::kWithoutBos).size(), 1001u);
}

TEST(WordPiece, AddedTokensAreNoPartsOfWords) {
  Json json = bert();
  json["added_tokens"].push_back(
      {{"id", 19}, {"content", "tt"}, {"special", false}, {"single_word", true}, {"normalized", false}});
  const auto tokenizer = test::load_json(json);
  EXPECT_EQ(tokenizer->encode("tt", test::kWithoutBos), (Tokens{19}));
  EXPECT_EQ(tokenizer->encode("ttx", test::kWithoutBos), (Tokens{1}));
  EXPECT_EQ(tokenizer->decode({4, 19}), "un tt");
}

TEST(WordPiece, MalformedModelsAreRefused) {
  const auto changed = [](const char* name, const Json& value) {
    Json json = bert();
    json["model"][name] = value;
    return test::refusal(json);
  };
  EXPECT_NE(changed("unk_token", "[X]").find("'unk_token' is not in the vocabulary"), std::string::npos);
  EXPECT_NE(changed("max_input_chars_per_word", -1).find("max_input_chars_per_word"), std::string::npos);
  EXPECT_NE(changed("max_input_chars_per_word", "many").find("max_input_chars_per_word"), std::string::npos);
  EXPECT_NE(changed("continuing_subword_prefix", 1).find("continuing_subword_prefix"), std::string::npos);
  EXPECT_NE(changed("vocab", Json::array()).find("must be an object"), std::string::npos);
  EXPECT_NE(changed("vocab", {{"[UNK]", 0}, {std::string(2000, 'a'), 30}}).find("2000 bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace word_piece_test
}  // namespace verbatim
