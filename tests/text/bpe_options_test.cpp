#include <gtest/gtest.h>

#include "tokenizer_json_support.h"

namespace verbatim {
namespace {

using test::Json;
using Tokens = std::vector<Token>;

Json bpe(const Json& vocab, const Json& merges) {
  return {{"decoder", {{"type", "Fuse"}}},
          {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
}

TEST(BpeOptions, TheEndOfAWordIsPartOfItsLastToken) {
  Json json = bpe({{"l", 0}, {"o", 1}, {"w", 2}, {"w</w>", 3}, {"lo", 4}, {"low</w>", 5}, {"o</w>", 6}},
                  Json::array({"l o", "lo w</w>"}));
  json["model"]["end_of_word_suffix"] = "</w>";
  json["decoder"] = {{"type", "BPEDecoder"}, {"suffix", "</w>"}};
  const auto tokenizer = test::load_json(json);
  EXPECT_EQ(tokenizer->encode("low lo wow", {}), (Tokens{5, 0, 6, 2, 1, 3}));
  EXPECT_EQ(tokenizer->decode({5, 0, 6, 2, 1, 3}), "low lo wow");
}

TEST(BpeOptions, ContinuingTokensHaveAPrefixThatMergesLeaveOut) {
  Json json = bpe({{"a", 0}, {"##b", 1}, {"##c", 2}, {"ab", 3}, {"##bc", 4}, {"abc", 5}, {"##a", 6}},
                  Json::array({"##b ##c", Json::array({"a", "##b"}), "ab ##c"}));
  json["model"]["continuing_subword_prefix"] = "##";
  const auto tokenizer = test::load_json(json);
  EXPECT_EQ(tokenizer->encode("abc", {}), (Tokens{0, 4})) << "b and c merge first";
  EXPECT_EQ(tokenizer->encode("ab aab", {}), (Tokens{3, 0, 6, 1}));
  json["model"]["merges"] = Json::array({"a b"});
  json["model"]["vocab"]["b"] = 7;
  EXPECT_NE(test::refusal(json).find("does not begin with '##'"), std::string::npos);
}

TEST(BpeOptions, UnknownAndBytesWithAMarkedEnd) {
  Json json = bpe({{"?", 0}, {"a", 1}, {"<0xC3>", 2}, {"<0xA9>", 3}, {"<0x24>", 4}}, Json::array());
  json["model"]["end_of_word_suffix"] = "$";
  json["model"]["unk_token"] = "?";
  EXPECT_EQ(test::load_json(json)->encode("aa éé", {}), (Tokens{1, 0, 0, 0}));
  json["model"]["fuse_unk"] = true;
  EXPECT_EQ(test::load_json(json)->encode("aa éé", {}), (Tokens{1, 0, 0}));
  json["model"]["byte_fallback"] = true;
  // The mark of the end is written as bytes, too: the text that has no token is the marked one.
  EXPECT_EQ(test::load_json(json)->encode("éé", {}), (Tokens{2, 3, 2, 3, 4}));
}

TEST(BpeOptions, BytesAsCharactersWithAnEndAsClipHasThem) {
  Json json = bpe({{"Ã", 0}, {"©", 1}, {"©</w>", 2}, {"Ã©</w>", 3}, {"a</w>", 4}}, Json::array({"Ã ©</w>"}));
  json["model"]["end_of_word_suffix"] = "</w>";
  json["pre_tokenizer"] = Json::parse(R"({"type": "Sequence", "pretokenizers": [
    {"type": "WhitespaceSplit"}, {"type": "ByteLevel", "add_prefix_space": false}]})");
  const auto tokenizer = test::load_json(json);
  EXPECT_EQ(tokenizer->encode("é a éé", {}), (Tokens{3, 4, 0, 1, 3}));
  EXPECT_EQ(tokenizer->kind(), "bpe");
}

TEST(BpeOptions, StepsMayFollowByteLevel) {
  Json json = bpe({{"Ġ", 0}, {"1", 1}, {"2", 2}, {"Ġ1", 3}, {"12", 4}}, Json::array({"Ġ 1", "1 2"}));
  json["decoder"] = {{"type", "ByteLevel"}};
  json["pre_tokenizer"] = Json::parse(R"({"type": "Sequence", "pretokenizers": [
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    {"type": "Digits", "individual_digits": false}]})");
  const auto tokenizer = test::load_json(json);
  EXPECT_EQ(tokenizer->encode(" 12", {}), (Tokens{0, 4}))
      << "the space and the digits are words of their own";
  EXPECT_EQ(tokenizer->decode({3, 4}), " 112");
}

TEST(BpeOptions, DropoutIsRefusedUnlessItIsNone) {
  Json json = bpe({{"a", 0}}, Json::array());
  for (const Json& none : {Json(nullptr), Json(0), Json(0.0)}) {
    json["model"]["dropout"] = none;
    EXPECT_EQ(test::load_json(json)->encode("a", {}), (Tokens{0}));
  }
  for (const Json& some : {Json(0.1), Json(1), Json("0")}) {
    json["model"]["dropout"] = some;
    EXPECT_NE(test::refusal(json).find("'dropout'"), std::string::npos);
  }
}

TEST(BpeOptions, MarksThatAreAbsurdlyLongAreRefused) {
  for (const char* mark : {"end_of_word_suffix", "continuing_subword_prefix"}) {
    Json json = bpe({{"a", 0}}, Json::array());
    json["model"][mark] = std::string(10'000, 'x');
    EXPECT_NE(test::refusal(json).find("absurdly long"), std::string::npos);
  }
}

TEST(BpeOptions, MarksThatMakeVeryManyByteTokensAreRefused) {
  for (const char* mark : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    Json json = bpe({{"?", 0}, {"a", 1}, {"<0x61>", 2}, {"<0x23>", 3}}, Json::array());
    json["model"]["byte_fallback"] = true;
    json["model"][mark] = std::string(63, '#');
    EXPECT_EQ(test::load_json(json)->encode("aa", {}).size(), 65u) << mark;
    json["model"][mark] = std::string(64, '#');
    const auto message = test::bad_input_message([&] { test::load_json(json); });
    EXPECT_NE(message.find("64 bytes or more is not supported with 'byte_fallback'"), std::string::npos)
        << message;
  }
}

TEST(BpeOptions, AddedTokensAreNoPartsOfWords) {
  Json json = bpe({{"a", 0}, {"?", 1}}, Json::array());
  json["model"]["unk_token"] = "?";
  json["added_tokens"] =
      Json::parse(R"([{"id": 2, "content": "é", "single_word": true, "normalized": false}])");
  EXPECT_EQ(test::load_json(json)->encode("é aé", {}), (Tokens{2, 0, 1}));
}

}  // namespace
}  // namespace verbatim
