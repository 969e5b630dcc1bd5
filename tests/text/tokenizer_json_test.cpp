#include "text/tokenizer_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tokenizer_support.h"

namespace verbatim {
namespace tokenizer_json_test {
namespace {

using Json = nlohmann::json;

/// A byte-level vocabulary of ASCII, some pairs and two added tokens.
Json small_byte_level() {
  Json json = Json::parse(R"({
    "added_tokens": [{"id": 200, "content": "<s>", "special": true}, {"id": 201, "content": "<t>", "special": false}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"Ġ": 32, "ab": 128, "Ġab": 129, "abab": 130, "cd": 131},
              "merges": ["a b", "Ġ ab", ["ab", "ab"]]}})");
  for (int c = 33; c < 127; ++c) json["model"]["vocab"][std::string(1, static_cast<char>(c))] = c;
  return json;
}

std::shared_ptr<const Tokenizer> load(const Json& json, const TokenizerConfig& config = {}) {
  return parse_tokenizer_json(json.dump(), {"tokenizer.json", config});
}

std::string error_of(const Json& json) {
  return test::bad_input_message([&] { load(json); });
}

TEST(TokenizerJson, MergesAsStringsAndAsPairs) {
  const auto tokenizer = load(small_byte_level());
  EXPECT_EQ(tokenizer->encode("ab abab", {}), (std::vector<Token>{128, 129, 128}));
  EXPECT_EQ(tokenizer->encode("abab", {}), (std::vector<Token>{130}));
}

TEST(TokenizerJson, IgnoreMergesTakesAWordThatIsATokenAsAWhole) {
  Json json = small_byte_level();
  EXPECT_EQ(load(json)->encode("cd", {}), (std::vector<Token>{'c', 'd'}));
  json["model"]["ignore_merges"] = true;
  EXPECT_EQ(load(json)->encode("cd", {}), (std::vector<Token>{131}));
}

TEST(TokenizerJson, AddedTokensAreFoundInTheText) {
  const auto tokenizer = load(small_byte_level());
  EXPECT_EQ(tokenizer->encode("x<s><t>ab", {}), (std::vector<Token>{'x', 200, 201, 128}));
  const auto plain = tokenizer->encode("<s><t>", test::kPlainText);
  EXPECT_EQ(plain, (std::vector<Token>{'<', 's', '>', 201})) << "only special tokens can be switched off";
  EXPECT_EQ(tokenizer->decode({200, 201, 128}), "<t>ab");
  EXPECT_TRUE(tokenizer->is_control(200));
  EXPECT_FALSE(tokenizer->is_control(201));
  EXPECT_EQ(tokenizer->vocab_size(), 202);
}

TEST(TokenizerJson, AddedTokensMaySwallowSpaceOrStandAlone) {
  Json json = small_byte_level();
  json["added_tokens"][1]["lstrip"] = true;
  json["added_tokens"][1]["rstrip"] = true;
  EXPECT_EQ(load(json)->encode("a  <t>\n\tb", {}), (std::vector<Token>{'a', 201, 'b'}));
  json = small_byte_level();
  json["added_tokens"][1]["content"] = "xy";
  json["added_tokens"][1]["single_word"] = true;
  EXPECT_EQ(load(json)->encode("xyz", {}), (std::vector<Token>{'x', 'y', 'z'}));
  EXPECT_EQ(load(json)->encode("xy!", {}), (std::vector<Token>{201, '!'}));
}

TEST(TokenizerJson, NormalizedAddedTokensAreLookedForAfterNormalization) {
  Json json = small_byte_level();
  json["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", "_"}}}, {"content", "-"}};
  json["added_tokens"][1]["content"] = "x_y";
  json["added_tokens"][1]["normalized"] = true;
  EXPECT_EQ(load(json)->encode("x-y", {}), (std::vector<Token>{201}));
  json["added_tokens"][1]["normalized"] = false;
  EXPECT_EQ(load(json)->encode("x-y", {}), (std::vector<Token>{'x', '-', 'y'}));
  EXPECT_EQ(load(json)->encode("x_y", {}), (std::vector<Token>{201}));
}

TEST(TokenizerJson, ThePostProcessorOrTheSettingsAddTheFirstToken) {
  Json json = small_byte_level();
  json["post_processor"] = Json::parse(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"},
    {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]}]})");
  EXPECT_EQ(load(json)->encode("ab", {}), (std::vector<Token>{200, 128}));
  EXPECT_EQ(load(json)->encode("ab", test::kWithoutBos), (std::vector<Token>{128}));
  TokenizerConfig config;
  config.add_bos = false;
  EXPECT_EQ(load(json, config)->encode("ab", {}), (std::vector<Token>{128}));
  config.add_bos = true;
  config.bos = "<s>";
  EXPECT_EQ(load(small_byte_level(), config)->encode("ab", {}), (std::vector<Token>{200, 128}));
}

TEST(TokenizerJson, UnknownCharactersGiveTheUnknownToken) {
  const Json json =
      Json::parse(R"({"model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 1}, "merges": []}})");
  EXPECT_EQ(load(json)->encode("aéßa", {}), (std::vector<Token>{1, 0, 0, 1}));
  Json fused = json;
  fused["model"]["fuse_unk"] = true;
  EXPECT_EQ(load(fused)->encode("aéßa", {}), (std::vector<Token>{1, 0, 1}));
  Json dropped = json;
  dropped["model"].erase("unk_token");
  EXPECT_EQ(load(dropped)->encode("aéßa", {}), (std::vector<Token>{1, 1}));
}

TEST(TokenizerJson, MetaspaceMarksSpacesAndDecodesThem) {
  const Json json = Json::parse(R"({
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true},
    "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true},
    "added_tokens": [{"id": 5, "content": "<s>", "special": true}],
    "model": {"type": "BPE", "vocab": {"▁": 0, "a": 1, "▁a": 2, "a▁": 3}, "merges": ["a ▁", "▁ a"]}})");
  const auto tokenizer = load(json);
  EXPECT_EQ(tokenizer->encode("a a", {}), (std::vector<Token>{2, 2})) << "words are cut before the mark";
  EXPECT_EQ(tokenizer->encode("<s>a", {}), (std::vector<Token>{5, 1})) << "only the text's start gets a mark";
  EXPECT_EQ(tokenizer->decode({2, 2}), "a a");
}

TEST(TokenizerJson, NormalizersApplyInOrder) {
  Json json = small_byte_level();
  json["normalizer"] = Json::parse(R"({"type": "Sequence", "normalizers": [{"type": "NFKC"},
    {"type": "Replace", "pattern": {"Regex": "[0-9]+"}, "content": "#"}, {"type": "Strip"}]})");
  EXPECT_EQ(load(json)->encode("  ａｂ 123 ", {}), (std::vector<Token>{128, 32, '#'}));
}

TEST(TokenizerJson, WhatIsNotSupportedIsSaidClearly) {
  Json json = small_byte_level();
  json["model"]["type"] = "WordLevel";
  EXPECT_NE(error_of(json).find("'WordLevel' is not supported (supported: BPE, Unigram, WordPiece)"),
            std::string::npos);
  json = small_byte_level();
  json["normalizer"] = {{"type", "Shout"}};
  EXPECT_NE(error_of(json).find("the normalizer 'Shout' is not supported"), std::string::npos);
  json = small_byte_level();
  json["pre_tokenizer"] = {{"type", "Chunks"}};
  EXPECT_NE(error_of(json).find("the pre-tokenizer 'Chunks'"), std::string::npos);
  json = small_byte_level();
  json["decoder"] = {{"type", "CTC"}};
  EXPECT_NE(error_of(json).find("the decoder 'CTC'"), std::string::npos);
}

TEST(TokenizerJson, MalformedFilesAreErrorsThatNameTheFile) {
  const auto change = [](const char* pointer, const Json& value) {
    Json json = small_byte_level();
    json[Json::json_pointer(pointer)] = value;
    return json.dump();
  };
  const std::string good = small_byte_level().dump();
  for (const std::string& text :
       {std::string(),
        std::string("[]"),
        std::string("{}"),
        std::string("null"),
        good.substr(0, good.size() / 2),
        good + "x",
        std::string("{\"model\": 1e999}"),
        std::string("{\"model\": \"\xFF\"}"),
        change("/model", 3),
        change("/model/vocab", 3),
        change("/model/vocab", Json::array()),
        change("/model/vocab/a", -1),
        change("/model/vocab/a", 1.5),
        change("/model/vocab/a", "x"),
        change("/model/vocab/a", 2147483647),
        change("/model/vocab/a", 4294967296),
        change("/model/merges", nullptr),
        change("/model/merges", "a b"),
        change("/model/merges/0", "ab"),
        change("/model/merges/0", 7),
        change("/model/merges/0", Json::array({"a"})),
        change("/model/merges/0", "no such"),
        change("/model/byte_fallback", "yes"),
        change("/model/unk_token", "missing"),
        change("/added_tokens", 1),
        change("/added_tokens/0", 1),
        change("/added_tokens/0/id", 1 << 30),
        change("/added_tokens/0/id", nullptr),
        change("/added_tokens/0/content", nullptr),
        change("/pre_tokenizer", 1),
        change("/pre_tokenizer/type", 1),
        change("/normalizer",
               Json::parse(R"({"type": "Replace", "pattern": {"String": ""}, "content": ""})")),
        change("/normalizer",
               Json::parse(R"({"type": "Replace", "pattern": {"Regex": "(("}, "content": ""})")),
        change("/normalizer", Json::parse(R"({"type": "Sequence", "normalizers": {}})")),
        change("/pre_tokenizer",
               Json::parse(R"({"type": "Split", "pattern": {"Regex": "a"}, "behavior": "None"})")),
        change("/post_processor", Json::parse(R"({"type": "TemplateProcessing", "single": 1})")),
        change(
            "/post_processor",
            Json::parse(R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "?!"}}]})"))}) {
    const auto message = test::bad_input_message([&] {
      parse_tokenizer_json(text, {"dir/tokenizer.json", {}});
    });
    EXPECT_EQ(message.rfind("dir/tokenizer.json: ", 0), 0u) << message;
  }
}

TEST(TokenizerJson, DeepNestingIsAnErrorAndNoCrash) {
  constexpr int kDepth = 200'000;
  const auto parse = [](const std::string& text) {
    return test::bad_input_message([&] { parse_tokenizer_json(text, {}); });
  };
  parse(std::string(kDepth, '['));
  parse(R"({"model": )" + std::string(kDepth, '[') + std::string(kDepth, ']') + "}");
  std::string nested = R"({"type": "NFC"})";
  for (int i = 0; i < 1000; ++i) nested = R"({"type": "Sequence", "normalizers": [)" + nested + "]}";
  EXPECT_NE(parse(R"({"normalizer": )" + nested + R"(, "model": {"type": "BPE", "vocab": {}, "merges": []}})")
                .find("nested too deeply"),
            std::string::npos);
}

TEST(TokenizerJson, APatternThatWouldTakeForeverIsStopped) {
  Json json = small_byte_level();
  json["pre_tokenizer"] = Json::parse(R"({"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": "(a|aa)+$"}, "behavior": "Isolated"}, {"type": "ByteLevel"}]})");
  const auto tokenizer = load(json);
  test::bad_input_message([&] { tokenizer->encode(std::string(200, 'a') + "b", {}); });
}

TEST(TokenizerJson, TextThatIsNotUtf8IsAnErrorWithTheOffset) {
  const auto tokenizer = load(small_byte_level());
  const auto message = test::bad_input_message([&] { tokenizer->encode("ab\xF0\x9F", {}); });
  EXPECT_NE(message.find("at byte 2"), std::string::npos) << message;
}

}  // namespace
}  // namespace tokenizer_json_test
}  // namespace verbatim
