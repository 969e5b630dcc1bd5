#include "prepare/converted_vocabulary.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/bad_input.h"
#include "checkpoint/hf_config.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "text/byte_level.h"
#include "text/tokenizer_json.h"
#include "verbatim/convert.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::expect_bad_input;

constexpr const char* kTexts[] = {"Once upon a time, there was a  tree.\n\n\tAnd 1234 birds'll sing…",
                                  "def f(x):\n    return x ** 2\r\n", " <s>[INST] hi [/INST] <|end|>x<|end|>",
                                  "naïve 数字 🙂 \u00a0"};

/// A model with a vocabulary that goes to a GGUF file and back.
class ConvertedVocabulary : public testing::Test {
 protected:
  void write_model(int32_t vocabulary) const {
    test::TinyModelOptions options;
    options.vocab_size = vocabulary;
    test::write_tiny_llama(model_, options);
  }
  void write(const char* name, const std::string& text) const {
    std::ofstream(model_ / name, std::ios::binary) << text;
  }
  ConvertReport convert() const {
    const auto report = convert_model(model_, gguf_);
    EXPECT_TRUE(convert_model(gguf_, back_));
    return report.value();
  }
  void expect_same() const {
    const auto original = load_tokenizer(find_tokenizer(model_));
    const auto converted = load_tokenizer({TokenizerSource::Kind::kGguf, gguf_});
    const auto back = load_tokenizer(find_tokenizer(back_));
    for (const std::string text : kTexts) {
      for (const bool special : {false, true}) {
        const Tokenizer::EncodeOptions options{.add_bos = true, .add_end = true, .parse_special = special};
        const std::vector<Token> expected = original->encode(text, options);
        EXPECT_EQ(converted->encode(text, options), expected) << text << special;
        EXPECT_EQ(back->encode(text, options), expected) << text << special;
        EXPECT_EQ(converted->decode(expected), original->decode(expected)) << text;
      }
    }
    EXPECT_EQ(converted->eos(), original->eos());
    EXPECT_EQ(back->eos(), original->eos());
  }

  test::TemporaryFolder folder_;
  fs::path model_ = folder_.path() / "model";
  fs::path gguf_ = folder_.path() / "model.gguf";
  fs::path back_ = folder_.path() / "back";
};

TEST_F(ConvertedVocabulary, OfPiecesIsTheSame) {
  write_model(4100);  // more than the vocabulary has
  for (const char* name : {"tokenizer.model", "tokenizer_config.json"}) {
    fs::copy(test::default_model() / name, model_ / name);
  }
  EXPECT_TRUE(convert().warnings.empty());
  expect_same();
}

TEST_F(ConvertedVocabulary, OfPiecesMayHaveHoles) {
  write_model(4100);
  fs::copy(test::default_model() / "tokenizer.model", model_ / "tokenizer.model");
  json config = json::parse(test::read_file(test::default_model() / "tokenizer_config.json"));
  config["added_tokens_decoder"]["4098"] = {{"content", "<|far|>"}, {"special", true}};  // 4096 is the next
  write("tokenizer_config.json", config.dump());
  convert();
  expect_same();
  const auto back = load_tokenizer(find_tokenizer(back_));
  EXPECT_EQ(back->encode("<|far|>", {.add_bos = false, .parse_special = true}), std::vector<Token>{4098});
}

/// A byte-level vocabulary with some merges and added tokens, in the style of a Qwen2 or a Llama 3.
json byte_level_vocabulary(const char* pattern, bool ignore_merges) {
  json vocab = json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocab[byte_level_text(std::string(1, static_cast<char>(byte)))] = byte;
  }
  json merges = json::array();
  int id = 256;
  for (const auto& [left, right] : std::vector<std::pair<std::string, std::string>>{
           {"o", "n"}, {"\u0120", "t"}, {"\u0120t", "i"}, {"r", "e"}, {"1", "2"}, {"\u010a", "\u010a"}}) {
    vocab[left + right] = id++;
    merges.push_back(left + " " + right);
  }
  json added = json::array();
  for (const auto& [text, special] :
       std::vector<std::pair<std::string, bool>>{{"<s>", true}, {"<|end|>", true}, {"[INST]", false}}) {
    added.push_back({{"id", id++},
                     {"content", text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", special}});
  }
  json result = {{"version", "1.0"}, {"added_tokens", added}, {"normalizer", nullptr}};
  result["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  result["decoder"] = {{"type", "ByteLevel"}};
  result["model"] = {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}, {"ignore_merges", ignore_merges}};
  return result;
}

constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

TEST_F(ConvertedVocabulary, OfBytesIsTheSame) {
  write_model(300);
  write("tokenizer.json", byte_level_vocabulary(kQwen2, false).dump());
  write("tokenizer_config.json", R"({"eos_token": "<|end|>", "chat_template": "{{ messages }}"})");
  write("generation_config.json", R"({"eos_token_id": 263})");
  EXPECT_TRUE(convert().warnings.empty());
  expect_same();
  const GgufFile gguf = open_gguf(gguf_);
  EXPECT_EQ(gguf_string(gguf, "tokenizer.ggml.pre"), "qwen2");
  EXPECT_EQ(gguf_string(gguf, "tokenizer.chat_template"), "{{ messages }}");
  EXPECT_EQ(json::parse(test::read_file(back_ / "tokenizer_config.json"))["chat_template"], "{{ messages }}");
}

TEST_F(ConvertedVocabulary, ThatBeginsTextsDoesSoStill) {
  write_model(300);
  json vocabulary = byte_level_vocabulary(kLlama3, true);
  vocabulary["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}}}}}}};
  write("tokenizer.json", vocabulary.dump());
  write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "<|end|>"})");
  write("generation_config.json", R"({"bos_token_id": 262, "eos_token_id": 263})");
  convert();
  expect_same();
  EXPECT_EQ(gguf_string(open_gguf(gguf_), "tokenizer.ggml.pre"), "llama-bpe");
}

TEST_F(ConvertedVocabulary, ThatEndsTextsDoesSoStill) {
  for (const bool begins : {false, true}) {
    SCOPED_TRACE(begins);
    for (const fs::path& made : {model_, gguf_, back_}) fs::remove_all(made);
    write_model(300);
    json vocabulary = byte_level_vocabulary(kLlama3, true);
    json single = json::parse(R"([{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<|end|>"}}])");
    if (begins) single.insert(single.begin(), json::parse(R"({"SpecialToken": {"id": "<s>"}})"));
    vocabulary["post_processor"] = {{"type", "TemplateProcessing"}, {"single", single}};
    write("tokenizer.json", vocabulary.dump());
    write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "<|end|>"})");
    write("generation_config.json", R"({"bos_token_id": 262, "eos_token_id": 263})");
    convert();
    expect_same();
    // Other programs look for the end in the post-processor alone.
    const auto alone =
        parse_tokenizer_json(test::read_file(back_ / "tokenizer.json"), {"tokenizer.json", {}});
    const std::vector<Token> expected = begins ? std::vector<Token>{262, 263} : std::vector<Token>{263};
    EXPECT_EQ(alone->encode("", {.add_end = true}), expected);
    EXPECT_EQ(json::parse(test::read_file(back_ / "tokenizer_config.json"))["eos_token"], "<|end|>");
  }
}

TEST_F(ConvertedVocabulary, OfPiecesThatEndsTextsDoesSoStill) {
  write_model(4100);
  fs::copy(test::default_model() / "tokenizer.model", model_ / "tokenizer.model");
  json config = json::parse(test::read_file(test::default_model() / "tokenizer_config.json"));
  config["add_eos_token"] = true;
  write("tokenizer_config.json", config.dump());
  convert();
  expect_same();
  const auto back = load_tokenizer(find_tokenizer(back_));
  EXPECT_EQ(back->encode("", {.add_bos = false, .add_end = true}), std::vector<Token>{back->eos().value()});
}

// The end of a message has a name of its own, also where no token ends a turn.
TEST_F(ConvertedVocabulary, TellsWhichEndIsWhich) {
  write_model(300);
  json vocabulary = byte_level_vocabulary(kLlama3, true);
  vocabulary["added_tokens"].push_back(
      {{"id", 265}, {"content", "<|eom_id|>"}, {"single_word", false}, {"special", true}});
  write("tokenizer.json", vocabulary.dump());
  write("tokenizer_config.json", R"({"eos_token": "<|end|>"})");
  for (const std::vector<int32_t>& ends : {std::vector{262, 265, 263}, std::vector{265, 263}}) {
    write("generation_config.json", json{{"eos_token_id", ends}}.dump());
    convert();
    expect_same();
    const GgufFile gguf = open_gguf(gguf_);
    EXPECT_EQ(gguf_integer(gguf, "tokenizer.ggml.eos_token_id"), 263) << "that of the vocabulary";
    EXPECT_EQ(gguf_integer(gguf, "tokenizer.ggml.eom_token_id"), 265) << "as its text says";
    if (ends.front() == 262) {
      EXPECT_EQ(gguf_integer(gguf, "tokenizer.ggml.eot_token_id"), 262);
    }
    for (const fs::path& made : {gguf_, back_}) fs::remove_all(made);
  }
}

TEST_F(ConvertedVocabulary, SaysThatGgufComposesNothing) {
  write_model(300);
  json vocabulary = byte_level_vocabulary(kQwen2, false);
  vocabulary["normalizer"] = {{"type", "NFC"}};
  write("tokenizer.json", vocabulary.dump());
  const ConvertReport report = convert();
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_NE(report.warnings[0].find("NFC"), std::string::npos);
}

TEST_F(ConvertedVocabulary, OfBytesKeepsTokensThatTheSettingsAdd) {
  write_model(300);
  write("tokenizer.json", byte_level_vocabulary(kQwen2, false).dump());
  const auto settings = [](bool strips) {
    json config = {{"eos_token", "<|end|>"}};
    config["added_tokens_decoder"]["270"] = {{"content", "tree"}, {"special", false}, {"lstrip", strips}};
    return config.dump();
  };
  write("tokenizer_config.json", settings(false));
  write("generation_config.json", R"({"eos_token_id": 263})");
  convert();
  expect_same();
  const auto converted = load_tokenizer({TokenizerSource::Kind::kGguf, gguf_});
  EXPECT_EQ(converted->encode("tree", {.add_bos = false}), std::vector<Token>{270});
  fs::remove(gguf_);
  write("tokenizer_config.json", settings(true));
  expect_bad_input([&] { convert_model(model_, gguf_); }, {"added token tree takes spaces"});
}

TEST_F(ConvertedVocabulary, OfBytesIgnoresOtherPlacesThatTheSettingsGiveItsTokens) {
  write_model(300);
  write("tokenizer.json", byte_level_vocabulary(kQwen2, false).dump());
  json config = {{"eos_token", "<|end|>"}};
  config["added_tokens_decoder"]["5"] = {{"content", "[INST]"}, {"special", false}};
  config["added_tokens_decoder"]["2000000000"] = {{"content", "<s>"}, {"special", true}};
  write("tokenizer_config.json", config.dump());
  write("generation_config.json", R"({"eos_token_id": 263})");
  convert();
  expect_same();
  const auto types = gguf_array(open_gguf(gguf_), "tokenizer.ggml.token_type");
  ASSERT_NE(types, nullptr);
  EXPECT_EQ(types->integers.at(5), 1) << "a normal token";
}

TEST_F(ConvertedVocabulary, OfPiecesIsRefusedWhereGgufHasNoLikeOfIt) {
  write_model(4100);
  const std::string pieces = test::read_file(test::default_model() / "tokenizer.model");
  const json settings = json::parse(test::read_file(test::default_model() / "tokenizer_config.json"));
  const auto expect_refused = [&](const std::string& file, const json& config,
                                  std::initializer_list<std::string> words) {
    write("tokenizer.model", file);
    write("tokenizer_config.json", config.dump());
    expect_bad_input([&] { convert_model(model_, gguf_); }, words);
    EXPECT_FALSE(fs::exists(gguf_));
  };
  // Fields at the end of the file stand in place of earlier ones: the kind of model, and a rule for spaces.
  expect_refused(pieces + "\x12\x02\x18\x01", settings, {"tokenizer.model", "Unigram vocabulary"});
  expect_refused(pieces + "\x1A\x02\x20\x01", settings, {"tokenizer.model", "normalizes texts"});
  json config = settings;
  config["added_tokens_decoder"]["4096"] = {{"content", "<|x|>"}, {"special", true}, {"rstrip", true}};
  expect_refused(pieces, config, {"added token <|x|> takes spaces around it"});
}

TEST_F(ConvertedVocabulary, ThatAddsOrMeansOtherTokensIsRefused) {
  write_model(300);
  const json plain = byte_level_vocabulary(kQwen2, false);
  const auto expect_refused = [&](const json& vocabulary, std::initializer_list<std::string> words) {
    write("tokenizer.json", vocabulary.dump());
    expect_bad_input([&] { convert_model(model_, gguf_); }, words);
    EXPECT_FALSE(fs::exists(gguf_));
  };
  const auto framed = [&](const char* single) {
    json vocabulary = plain;
    vocabulary["post_processor"] = {{"type", "TemplateProcessing"}, {"single", json::parse(single)}};
    return vocabulary;
  };
  expect_refused(
      framed(
          R"([{"SpecialToken": {"id": "<s>"}}, {"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}])"),
      {"puts 2 tokens before a text and 0 behind it"});
  expect_refused(framed(R"([{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<s>"}}])"),
                 {"puts 0 tokens before a text and 1 behind it"});
  json vocabulary = plain;
  vocabulary["decoder"] = json::parse(R"({"type": "Sequence", "decoders": [{"type": "ByteLevel"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})");
  expect_refused(vocabulary, {"token 32", "would mean something else in the other format"});
  vocabulary = plain;
  vocabulary["model"]["vocab"].erase(byte_level_text("\xF0"));
  vocabulary["model"]["unk_token"] = "<s>";
  expect_refused(vocabulary, {"the text", "would have other tokens in the other format"});
  vocabulary["model"] = {{"type", "WordPiece"}, {"unk_token", "a"}, {"vocab", {{"a", 0}}}};
  expect_refused(vocabulary, {"of the kind 'wordpiece'", "cannot be converted"});
}

TEST_F(ConvertedVocabulary, OfVocabJsonIsRefused) {
  write_model(300);
  write("vocab.json", byte_level_vocabulary(kQwen2, false)["model"]["vocab"].dump());
  write("merges.txt", "o n\n");
  expect_bad_input([&] { convert_model(model_, gguf_); },
                   {"vocab.json", "only tokenizer.model and tokenizer.json"});
}

TEST_F(ConvertedVocabulary, IsRefusedWhereGgufHasNoLikeOfIt) {
  write_model(300);
  const auto expect_refused = [&](const json& vocabulary, std::initializer_list<std::string> words) {
    write("tokenizer.json", vocabulary.dump());
    expect_bad_input([&] { convert_model(model_, gguf_); }, words);
    EXPECT_FALSE(fs::exists(gguf_));
  };
  expect_refused(byte_level_vocabulary(R"(\w+|\W)", false), {"tokenizer.json", "no name for the way"});
  expect_refused(byte_level_vocabulary(kQwen2, true), {"tokenizer.json", "no name for the way"});
  json vocabulary = byte_level_vocabulary(kQwen2, false);
  vocabulary["normalizer"] = {{"type", "NFKC"}};
  expect_refused(vocabulary, {"normalized by NFKC"});
  vocabulary = byte_level_vocabulary(kQwen2, false);
  vocabulary["added_tokens"][0]["rstrip"] = true;
  expect_refused(vocabulary, {"added token 262", "rstrip"});
  vocabulary = byte_level_vocabulary(kQwen2, false);
  vocabulary["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {{{"SpecialToken", {{"id", "<|end|>"}}}}, {{"Sequence", {{"id", "A"}}}}}}};
  write("tokenizer_config.json", R"({"bos_token": "<s>"})");
  expect_refused(vocabulary, {"begins texts with token 263", "bos_token is 262"});
  write_model(260);
  expect_refused(byte_level_vocabulary(kQwen2, false), {"265 tokens", "260"});
}

}  // namespace
}  // namespace verbatim
