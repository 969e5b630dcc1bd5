#include <gtest/gtest.h>

#include "tokenizer_json_support.h"

namespace verbatim {
namespace post_processor_test {
namespace {

using test::Json;
using Tokens = std::vector<Token>;

/// A vocabulary with the token "a" (1) and the added tokens "<s>" (5), "</s>" (6) and "<m>" (7).
Json with_processor(const char* processor) {
  Json json = test::words_json({"a"});
  json["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  json["added_tokens"] = Json::parse(R"([{"id": 5, "content": "<s>", "special": true},
    {"id": 6, "content": "</s>", "special": true}, {"id": 7, "content": "<m>", "special": true}])");
  json["post_processor"] = Json::parse(processor);
  return json;
}

struct Framed {
  Tokens prompt;
  Tokens whole;
};

Framed framed(const Json& json, const TokenizerConfig& config = {}) {
  const auto tokenizer = parse_tokenizer_json(json.dump(), {"tokenizer.json", config});
  return {tokenizer->encode("a", {}), tokenizer->encode("a", {.add_end = true})};
}

std::string refused(const char* processor) {
  return test::refusal(with_processor(processor));
}

TEST(PostProcessor, ATemplatePutsTokensBeforeAndBehindAText) {
  const Json json = with_processor(R"({"type": "TemplateProcessing", "single": [
    {"SpecialToken": {"id": "BEGIN", "type_id": 0}}, {"SpecialToken": {"id": "<m>", "type_id": 0}},
    {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
    "pair": [], "special_tokens": {"BEGIN": {"id": "BEGIN", "ids": [5, 5], "tokens": ["<s>", "<s>"]},
    "</s>": {"id": "</s>", "ids": [6], "tokens": ["</s>"]}}})");
  EXPECT_EQ(framed(json).prompt, (Tokens{5, 5, 7, 1}));
  EXPECT_EQ(framed(json).whole, (Tokens{5, 5, 7, 1, 6}));
  const auto tokenizer = test::load_json(json);
  EXPECT_EQ(tokenizer->encode("a", test::kWithoutBos), (Tokens{1}));
  EXPECT_EQ(tokenizer->bos(), 5);
}

TEST(PostProcessor, BertAndRobertaNameTheirTokens) {
  for (const char* type : {"BertProcessing", "RobertaProcessing"}) {
    const Json json =
        with_processor((R"({"cls": ["<s>", 5], "sep": ["</s>", 6], "trim_offsets": true, "type": ")" +
                        std::string(type) + "\"}")
                           .c_str());
    EXPECT_EQ(framed(json).prompt, (Tokens{5, 1}));
    EXPECT_EQ(framed(json).whole, (Tokens{5, 1, 6}));
  }
}

TEST(PostProcessor, InASequenceLaterStepsStandOutside) {
  const Json json = with_processor(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"},
    {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<m>"}}, {"Sequence": {"id": "A"}}]},
    {"type": "RobertaProcessing", "cls": ["<s>", 5], "sep": ["</s>", 6]}]})");
  EXPECT_EQ(framed(json).whole, (Tokens{5, 7, 1, 6}));
}

TEST(PostProcessor, TheSettingsMayAddOrLeaveOutTheEnd) {
  const char* const ending =
      R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "</s>"}}]})";
  TokenizerConfig config;
  config.eos = "</s>";
  config.add_eos = false;
  EXPECT_EQ(framed(with_processor(ending), config).whole, (Tokens{1}));
  config.add_eos = true;
  EXPECT_EQ(framed(with_processor(ending), config).whole, (Tokens{1, 6}));
  EXPECT_EQ(framed(with_processor("null"), config).whole, (Tokens{1, 6}));
  EXPECT_EQ(framed(with_processor("null"), config).prompt, (Tokens{1}));
}

TEST(PostProcessor, ItsSingleTokenWinsOverTheBeginningThatTheSettingsName) {
  const char* const beginning =
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<m>"}}, {"Sequence": {"id": "A"}}]})";
  TokenizerConfig config;
  config.bos = "<s>";
  EXPECT_EQ(framed(with_processor(beginning), config).prompt, (Tokens{7, 1}));
  const auto tokenizer = parse_tokenizer_json(with_processor(beginning).dump(), {"tokenizer.json", config});
  EXPECT_EQ(tokenizer->bos(), 5) << "chat templates write the token that the settings name";
  config.add_bos = false;
  EXPECT_EQ(framed(with_processor(beginning), config).prompt, (Tokens{1}));
}

TEST(PostProcessor, WhatCannotBeUnderstoodIsRefused) {
  EXPECT_NE(refused(R"({"type": "Other"})").find("the post-processor 'Other' is not supported"),
            std::string::npos);
  EXPECT_NE(refused(R"({"type": "TemplateProcessing", "single": []})").find("must have the text once"),
            std::string::npos);
  EXPECT_NE(
      refused(
          R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}, {"Sequence": {"id": "A"}}]})")
          .find("must have the text once"),
      std::string::npos);
  EXPECT_NE(
      refused(R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "B"}}]})").find("second text"),
      std::string::npos);
  EXPECT_NE(refused(R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<x>"}}]})")
                .find("'<x>' is not in the vocabulary"),
            std::string::npos);
  EXPECT_NE(refused(R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}],
    "special_tokens": {"x": {"ids": [99]}}})")
                .find("token 99 is not in the vocabulary"),
            std::string::npos);
  EXPECT_NE(refused(R"({"type": "BertProcessing", "cls": "<s>", "sep": ["</s>", 6]})").find("'cls'"),
            std::string::npos);
  EXPECT_NE(refused(R"({"type": "BertProcessing", "cls": ["<s>", 5], "sep": ["</s>", -6]})").find("token id"),
            std::string::npos);
}

TEST(PostProcessor, TemplatesThatAddVeryManyTokensAreRefused) {
  Json json = with_processor(R"({"type": "TemplateProcessing", "single": [],
    "special_tokens": {"x": {"ids": []}}})");
  for (int i = 0; i < 1000; ++i) {
    json["post_processor"]["special_tokens"]["x"]["ids"].push_back(5);
    json["post_processor"]["single"].push_back({{"SpecialToken", {{"id", "x"}}}});
  }
  EXPECT_NE(test::refusal(json).find("absurdly many"), std::string::npos);
}

}  // namespace
}  // namespace post_processor_test
}  // namespace verbatim
