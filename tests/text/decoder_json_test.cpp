#include <gtest/gtest.h>

#include "text/detokenizer.h"
#include "tokenizer_json_support.h"

namespace verbatim {
namespace decoder_json_test {
namespace {

using test::Json;
using Tokens = std::vector<Token>;

/// A vocabulary of some texts with ids from 1 on, and a decoder.
Json with_decoder(const char* decoder, const std::vector<std::string>& texts) {
  Json json = test::words_json(texts);
  json["decoder"] = Json::parse(decoder);
  return json;
}

/// The text of tokens, which streaming must give as well, and may give at once where nothing can be left out.
std::string decoded(const Json& json, const Tokens& tokens) {
  const auto tokenizer = test::load_json(json);
  const std::string text = tokenizer->decode(tokens);
  StreamingDetokenizer stream(*tokenizer, true);
  std::string streamed;
  for (const Token token : tokens) streamed += stream.push(token);
  streamed += stream.finish();
  EXPECT_EQ(streamed, text);
  return text;
}

std::string refused(const char* decoder) {
  return test::refusal(with_decoder(decoder, {"a"}));
}

TEST(DecoderJson, WithoutADecoderTokensAreWords) {
  Json json = with_decoder("null", {"a", "b"});
  EXPECT_EQ(decoded(json, {1, 2, 1}), "a b a");
}

TEST(DecoderJson, ReplaceTakesStringsAndRegularExpressions) {
  EXPECT_EQ(decoded(with_decoder(R"({"type": "Replace", "pattern": {"String": "_"}, "content": " "})",
                                 {"_a_", "b"}),
                    {1, 2}),
            " a b");
  EXPECT_EQ(decoded(with_decoder(R"({"type": "Replace", "pattern": {"Regex": "^_|x+"}, "content": "-"})",
                                 {"_a_", "_xx"}),
                    {1, 2}),
            "-a_--");
}

TEST(DecoderJson, MetaspaceDropsTheMarksOfTheFirstToken) {
  const char* const always = R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "always"})";
  EXPECT_EQ(decoded(with_decoder(always, {"_a", "__b"}), {1, 2, 1}), "a  b a");
  EXPECT_EQ(decoded(with_decoder(always, {"_a", "__b"}), {2, 1}), "b a");
  const char* const never = R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": false})";
  EXPECT_EQ(decoded(with_decoder(never, {"_a"}), {1, 1}), " a a");
}

TEST(DecoderJson, StripAppliesToEachTokenUnlessTheyAreFused) {
  const char* const each = R"({"type": "Strip", "content": "H", "start": 2, "stop": 1})";
  EXPECT_EQ(decoded(with_decoder(each, {"HHHey", "aHH", "HH"}), {1, 2, 3}), "HeyaH");
  const char* const whole = R"({"type": "Sequence", "decoders": [{"type": "Fuse"},
    {"type": "Strip", "content": "H", "start": 2, "stop": 1}]})";
  const Json json = with_decoder(whole, {"H", "ab", "HH"});
  EXPECT_EQ(decoded(json, {1, 1, 1, 2, 3}), "HabH");
  EXPECT_EQ(decoded(json, {1, 2, 1, 1, 2}), "abHHab");
  EXPECT_EQ(decoded(json, {1, 1, 1}), "");
  EXPECT_EQ(decoded(json, {}), "");
}

TEST(DecoderJson, FusedTextsLoseOneSpaceAsLlamaHasIt) {
  const char* const llama = R"({"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";
  const Json json = with_decoder(llama, {"▁a", "<0xC3>", "<0xA9>", "▁▁b"});
  EXPECT_EQ(decoded(json, {1, 2, 3, 1}), "aé a");
  EXPECT_EQ(decoded(json, {4, 4}), " b  b");
  const auto tokenizer = test::load_json(json);
  StreamingDetokenizer stream(*tokenizer, true);
  EXPECT_EQ(stream.push(1), "a") << "nothing is held back";
}

TEST(DecoderJson, AStripOfSeveralCharactersWaitsAtTheStartAndAtTheEnd) {
  const auto tokenizer = test::load_json(with_decoder(
      R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Strip", "content": "ß", "start": 0, "stop": 1}]})",
      {"a", "ß", "<0xC3>"}));
  StreamingDetokenizer stream(*tokenizer, true);
  EXPECT_EQ(stream.push(1), "a");
  EXPECT_EQ(stream.push(2), "");
  EXPECT_EQ(stream.push(2), "ß");
  EXPECT_EQ(stream.push(1), "ßa");
  EXPECT_EQ(stream.push(2), "");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(stream.finish(), "");
}

TEST(DecoderJson, BpeDecoderPutsSpacesBehindWordsButTheLast) {
  const Json json =
      with_decoder(R"({"type": "BPEDecoder", "suffix": "</w>"})", {"hello</w>", "wor", "ld</w>"});
  EXPECT_EQ(decoded(json, {1, 2, 3}), "hello world");
  EXPECT_EQ(decoded(json, {1, 2}), "hello wor");
  const auto tokenizer = test::load_json(json);
  StreamingDetokenizer stream(*tokenizer, true);
  EXPECT_EQ(stream.push(1), "hello");
  EXPECT_EQ(stream.push(2), " wor");
  EXPECT_EQ(stream.push(3), "ld");
  EXPECT_EQ(stream.finish(), "");
  for (const char* token : {"a</w>b", "</w></w>", "a "}) {
    EXPECT_NE(test::refusal(with_decoder(R"({"type": "BPEDecoder"})", {token})).find("in an unusual place"),
              std::string::npos)
        << token;
  }
}

TEST(DecoderJson, ByteLevelAndWhatFollowsIt) {
  EXPECT_EQ(decoded(with_decoder(R"({"type": "ByteLevel"})", {"Ġa", "Ã", "©"}), {1, 2, 3}), " aé");
  EXPECT_EQ(decoded(with_decoder(R"({"type": "Sequence", "decoders": [{"type": "ByteLevel"},
    {"type": "Replace", "pattern": {"String": "_"}, "content": "-"}]})",
                                 {"Ġ_a"}),
                    {1}),
            " -a");
}

TEST(DecoderJson, WhatLooksAcrossTokensIsRefused) {
  for (const char* step :
       {R"({"type": "Replace", "pattern": {"String": "ab"}, "content": ""})",
        R"({"type": "Replace", "pattern": {"Regex": "a"}, "content": ""})", R"({"type": "Metaspace"})",
        R"({"type": "WordPiece"})", R"({"type": "BPEDecoder"})", R"({"type": "ByteFallback"})",
        R"({"type": "ByteFallback"}, {"type": "ByteLevel"})",
        R"({"type": "ByteLevel"}, {"type": "ByteLevel"})",
        R"({"type": "ByteLevel"}, {"type": "Replace", "pattern": {"String": "é"}, "content": "éé"})",
        R"({"type": "ByteLevel"}, {"type": "Replace", "pattern": {"String": "\ufffd"}, "content": ""})",
        R"({"type": "ByteLevel"}, {"type": "Replace", "pattern": {"String": "▁"}, "content": ""},
          {"type": "Replace", "pattern": {"String": "é"}, "content": "e"})"}) {
    const std::string decoder =
        R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, )" + std::string(step) + "]}";
    EXPECT_NE(refused(decoder.c_str()).find("after one that joins tokens is not supported"),
              std::string::npos)
        << step;
  }
}

TEST(DecoderJson, AStripOfFusedTextsAppliesWhereTokensDependOnTheirPlaceAsWell) {
  const Json json = with_decoder(R"({"type": "Sequence", "decoders": [{"type": "WordPiece", "cleanup": false},
    {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})",
                                 {" a", "b"});
  EXPECT_EQ(decoded(json, {1, 1, 2}), "a  a b");
}

TEST(DecoderJson, AStripOfFusedTextsFindsTheSpaceBehindTokensThatAddNothing) {
  const Json json = with_decoder(R"({"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "_"}, "content": ""}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})",
                                 {"_", " a"});
  EXPECT_EQ(decoded(json, {1, 1, 2, 1, 2}), "a a");
}

TEST(DecoderJson, AReplacedCharacterBehindFuseMayComeFromSeveralTokens) {
  const char* const decoder = R"({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}]})";
  const Json json = with_decoder(decoder, {"▁a", "<0xE2>", "<0x96>", "<0x81>", "é▁"});
  EXPECT_EQ(decoded(json, {1, 5, 1}), " aé  a");
  EXPECT_EQ(decoded(json, {2, 3, 4, 1, 2, 3, 4}), "  a ");
  EXPECT_EQ(decoded(json, {2, 3, 1, 4}), "\xE2\x96 a\x81") << "bytes that form no character stay";
  EXPECT_EQ(test::load_json(json)->piece_bytes(1, false), " a");
}

TEST(DecoderJson, AReplacedCharacterThatSeveralTokensSpellIsStripped) {
  const char* const decoder = R"({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "Strip", "content": " ", "start": 1, "stop": 1}]})";
  const Json json = with_decoder(decoder, {"▁a", "<0xE2>", "<0x96>", "<0x81>"});
  EXPECT_EQ(decoded(json, {2, 3, 4, 1, 2, 3, 4}), " a");
  EXPECT_EQ(decoded(json, {1, 2, 3, 4, 2, 3, 4}), "a ");
}

TEST(DecoderJson, AReplacedCharacterBehindByteLevelMayComeFromSeveralTokens) {
  const Json json = with_decoder(R"({"type": "Sequence", "decoders": [{"type": "ByteLevel"},
    {"type": "Replace", "pattern": {"String": "é"}, "content": "e"}]})",
                                 {"Ã", "©", "Ã©a"});
  EXPECT_EQ(decoded(json, {1, 2, 3}), "eea");
}

TEST(DecoderJson, ByteLevelBehindFuseIsTheSameWhereAllTokensSpellBytes) {
  const char* const decoder =
      R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteLevel"}]})";
  Json json = with_decoder(decoder, {"Ġa", "Ã", "©"});
  json["added_tokens"] = Json::parse(
      R"([{"id": 4, "content": "<b>", "special": false}, {"id": 5, "content": "<｜s ▁>", "special": true}])");
  EXPECT_EQ(decoded(json, {1, 2, 5, 3, 4}), " aé<b>");
  for (const char* token : {"a b", "数", "▁"}) {
    EXPECT_NE(test::refusal(with_decoder(decoder, {token})).find("which does not spell bytes"),
              std::string::npos)
        << token;
  }
  json["added_tokens"] = Json::parse(R"([{"id": 4, "content": "Ġ", "special": false}])");
  EXPECT_NE(test::refusal(json).find("which does not spell bytes"), std::string::npos);
}

TEST(DecoderJson, MalformedOnesAreRefused) {
  EXPECT_NE(refused(R"({"type": "CTC"})").find("the decoder 'CTC' is not supported"), std::string::npos);
  EXPECT_NE(refused(R"({"type": "Strip", "content": "ab", "start": 1, "stop": 0})").find("single character"),
            std::string::npos);
  EXPECT_NE(
      refused(R"({"type": "Strip", "content": "a", "start": -1, "stop": 0})").find("'start' must be a count"),
      std::string::npos);
  EXPECT_NE(refused(R"({"type": "Strip", "content": "a", "start": 1})").find("'stop' is missing"),
            std::string::npos);
  EXPECT_NE(refused(R"({"type": "BPEDecoder", "suffix": ""})").find("is empty"), std::string::npos);
  const std::string bomb =
      R"({"type": "Replace", "pattern": {"String": "a"}, "content": ")" + std::string(100'000, 'x') + "\"}";
  EXPECT_NE(refused(bomb.c_str()).find("absurdly long"), std::string::npos);
  Json huge = with_decoder(R"({"type": "Sequence", "decoders": [{"type": "Fuse"},
    {"type": "Strip", "content": "a", "start": 18446744073709551615, "stop": 18446744073709551615}]})",
                           {"a"});
  EXPECT_EQ(decoded(huge, {1, 1, 1}), "");
}

}  // namespace
}  // namespace decoder_json_test
}  // namespace verbatim
