#include <gtest/gtest.h>

#include "tokenizer_json_support.h"

namespace verbatim {
namespace unigram_test {
namespace {

using test::Json;
using Tokens = std::vector<Token>;

Json unigram(const Json& vocab) {
  return {{"decoder", {{"type", "Fuse"}}}, {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}}}};
}

const Json kLetters = Json::array({{"<unk>", 0.0}, {"a", -1.0}, {"b", -1.0}, {"c", -1.0}, {"d", -1.0}});

Json with_pieces(const Json& pieces) {
  Json vocab = kLetters;
  for (const Json& piece : pieces) vocab.push_back(piece);
  return unigram(vocab);
}

TEST(Unigram, TheLargestSumOfScoresWins) {
  // "ab" + "cd" is -3, "abc" + "d" is -2.9, "a" + "bcd" is -2.8, all letters -4.
  const auto tokenizer =
      test::load_json(with_pieces(Json::array({{"ab", -1.5}, {"cd", -1.5}, {"abc", -1.9}, {"bcd", -1.8}})));
  EXPECT_EQ(tokenizer->encode("abcd", {}), (Tokens{1, 8}));
  EXPECT_EQ(tokenizer->encode("abc", {}), (Tokens{7}));
  EXPECT_EQ(tokenizer->encode("dabcd", {}), (Tokens{4, 1, 8}));
  EXPECT_EQ(tokenizer->decode({1, 8}), "abcd");
  EXPECT_EQ(tokenizer->kind(), "unigram");
}

TEST(Unigram, OfEqualSumsTheOneFoundFirstWins) {
  // Both cuts are -3. The token that begins earlier reaches the end first.
  const auto tokenizer = test::load_json(with_pieces(Json::array({{"abc", -2.0}, {"bcd", -2.0}})));
  EXPECT_EQ(tokenizer->encode("abcd", {}), (Tokens{1, 6}));
}

TEST(Unigram, NeighbouringUnknownCharactersGiveOneUnknownToken) {
  const auto tokenizer = test::load_json(with_pieces({}));
  EXPECT_EQ(tokenizer->encode("aéßb", {}), (Tokens{1, 0, 2}));
  EXPECT_EQ(tokenizer->encode("éaß", {}), (Tokens{0, 1, 0}));
}

TEST(Unigram, AnUnknownCharacterIsTenWorseThanTheWorstToken) {
  // "xab": the unknown "x" is -20 - 10, and "ab" 0; "xa" and "b" are worth more if "xa" is above -10.
  const auto with_score = [](double score) {
    return test::load_json(
        unigram(Json::array({{"<unk>", 0.0}, {"a", -1.0}, {"b", -20.0}, {"ab", 0.0}, {"xa", score}})));
  };
  EXPECT_EQ(with_score(-9.5)->encode("xab", {}), (Tokens{4, 2}));
  EXPECT_EQ(with_score(-10.5)->encode("xab", {}), (Tokens{0, 3}));
}

TEST(Unigram, UnknownCharactersFallBackToBytes) {
  Json json = with_pieces(Json::array({{"<0xC3>", 0.0}, {"<0xA9>", 0.0}}));
  json["decoder"] = {{"type", "ByteFallback"}};
  EXPECT_EQ(test::load_json(json)->encode("aé", {}), (Tokens{1, 0})) << "not asked for";
  json["model"]["byte_fallback"] = true;
  const auto tokenizer = test::load_json(json);
  EXPECT_EQ(tokenizer->encode("aé", {}), (Tokens{1, 5, 6}));
  EXPECT_EQ(tokenizer->decode({1, 5, 6}), "aé");
  EXPECT_EQ(tokenizer->encode("éß", {}), (Tokens{0})) << "a byte of the two has no token";
}

TEST(Unigram, WithoutAnUnknownTokenAnUnknownCharacterIsAnError) {
  Json json = with_pieces({});
  json["model"].erase("unk_id");
  const auto tokenizer = test::load_json(json);
  EXPECT_EQ(tokenizer->encode("ab", {}), (Tokens{1, 2}));
  EXPECT_NE(test::bad_input_message([&] { tokenizer->encode("aé", {}); }).find("no token for"),
            std::string::npos);
}

TEST(Unigram, MetaspaceAndTheEndOfATextAsT5HasThem) {
  Json json = unigram(Json::array({{"<unk>", -2.0}, {"</s>", 0.0}, {"▁", -2.0}, {"▁a", -1.0}, {"b", -1.0}}));
  json["added_tokens"] = Json::parse(R"([{"id": 0, "content": "<unk>", "special": true},
    {"id": 1, "content": "</s>", "special": true}])");
  json["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "▁"}, {"add_prefix_space", true}};
  json["decoder"] = json["pre_tokenizer"];
  json["post_processor"] = Json::parse(R"({"type": "TemplateProcessing",
    "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
    "special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}})");
  const auto tokenizer = test::load_json(json);
  EXPECT_EQ(tokenizer->encode("a ab  b", {}), (Tokens{3, 3, 4, 2, 2, 4}));
  EXPECT_EQ(tokenizer->encode("a</s>", {.add_end = true}), (Tokens{3, 1, 1}));
  EXPECT_EQ(tokenizer->decode({3, 3, 4, 2, 2, 4}), "a ab  b");
  EXPECT_EQ(tokenizer->decode({2, 2, 4}), " b") << "the first token has none of its marks";
}

TEST(Unigram, ALongWordTakesTimeInProportion) {
  Json json = with_pieces(Json::array({{std::string(1024, 'a'), -1.0}}));
  const auto tokenizer = test::load_json(json);
  const std::string word(1 << 16, 'a');
  EXPECT_EQ(tokenizer->encode(word, {}).size(), size_t{1} << 6);
  EXPECT_EQ(tokenizer->encode(std::string(1 << 20, 'x'), {}), (Tokens{0}));
}

TEST(Unigram, MalformedVocabulariesAreRefused) {
  const auto changed = [](const char* pointer, const Json& value) {
    Json json = unigram(kLetters);
    json[Json::json_pointer(pointer)] = value;
    return test::refusal(json);
  };
  EXPECT_NE(changed("/model/unk_id", 5).find("'unk_id' is not in the vocabulary"), std::string::npos);
  for (const Json& id : {Json(-1), Json(1.5), Json("0"), Json(1ull << 40)}) {
    EXPECT_NE(changed("/model/unk_id", id).find("token id"), std::string::npos);
  }
  for (const Json& entry : {Json(1), Json::array({"a"}), Json::array({"a", "b"}), Json::array({1, 1}),
                            Json::array({"a", 1, 2}), Json(nullptr)}) {
    EXPECT_NE(changed("/model/vocab/2", entry).find("token 2 of the Unigram vocabulary"), std::string::npos);
  }
  EXPECT_NE(changed("/model/vocab", Json::object()).find("must be a list"), std::string::npos);
  EXPECT_NE(changed("/model/vocab/1", {std::string(1025, 'a'), 0}).find("has 1025 bytes"), std::string::npos);
  EXPECT_NE(changed("/model/byte_fallback", 1).find("byte_fallback"), std::string::npos);
}

TEST(Unigram, ExtremeScoresGiveSomeTokens) {
  Json json = with_pieces(Json::array({{"ab", 1e308}, {"bc", -1e308}, {"", 3.0}, {"a", -2.0}}));
  const auto tokenizer = test::load_json(json);
  EXPECT_EQ(tokenizer->encode("abab", {}), (Tokens{5, 5}));
  EXPECT_EQ(tokenizer->encode("a", {}), (Tokens{8})) << "the last of equal texts counts";
}

}  // namespace
}  // namespace unigram_test
}  // namespace verbatim
