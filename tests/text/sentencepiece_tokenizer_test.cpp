#include "text/sentencepiece_tokenizer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>

#include "text/tokenizer_json.h"
#include "tokenizer_support.h"

namespace verbatim {
namespace {

std::filesystem::path llama2() {
  return test::public_data() / "tokenizers" / "llama-2";
}

class PublicLlama2 : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (test::public_data().empty()) return;
    model = load_tokenizer({TokenizerSource::Kind::kSentencePieceModel, llama2() / "tokenizer.model"});
    json = load_tokenizer({TokenizerSource::Kind::kTokenizerJson, llama2() / "tokenizer.json"});
  }
  static void TearDownTestSuite() { model = json = nullptr; }

  static inline std::shared_ptr<const Tokenizer> model;
  static inline std::shared_ptr<const Tokenizer> json;
};

// The text holds "<unk>", which is a special token and as such decodes to nothing: it comes back only when it
// was encoded as plain text.
TEST_F(PublicLlama2, ModelAndJsonAgreeOnEveryLineOfRealText) {
  NEEDS_PUBLIC_DATA();
  std::istringstream text(test::read_file(test::public_data() / "text" / "wikitext2_test.txt"));
  for (std::string line; std::getline(text, line);) {
    ASSERT_EQ(json->encode(line, {}), model->encode(line, {})) << line;
    const auto tokens = model->encode(line, test::kPlainText);
    ASSERT_EQ(json->encode(line, test::kPlainText), tokens) << line;
    ASSERT_EQ(model->decode(tokens), line);
  }
}

TEST_F(PublicLlama2, ModelAndJsonAgreeOnLargeChunks) {
  NEEDS_PUBLIC_DATA();
  const std::string text = test::read_file(test::public_data() / "text" / "wikitext2_test.txt");
  constexpr size_t kChunk = 200'000;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.size(), begin + kChunk);
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) ++end;
    const std::string chunk = text.substr(begin, end - begin);
    ASSERT_EQ(json->encode(chunk, {}), model->encode(chunk, {}));
    const auto tokens = model->encode(chunk, test::kPlainText);
    ASSERT_EQ(json->encode(chunk, test::kPlainText), tokens);
    ASSERT_EQ(json->decode(tokens), chunk);
    begin = end;
  }
}

// U+2581 is the one character that does not come back: the vocabulary writes it for a space, and so both
// decode to one.
TEST_F(PublicLlama2, ModelAndJsonAgreeOnRandomTextWhichSurvives) {
  NEEDS_PUBLIC_DATA();
  std::mt19937 random(2024);
  for (int i = 0; i < 10'000; ++i) {
    const std::string line = test::random_line(random);
    const auto tokens = model->encode(line, test::kPlainText);
    ASSERT_EQ(json->encode(line, test::kPlainText), tokens) << i << ": " << line;
    ASSERT_EQ(model->decode(tokens), line);
    ASSERT_EQ(json->decode(tokens), line);
  }
  EXPECT_EQ(model->decode(model->encode("a▁b", {})), "a b");
  EXPECT_EQ(json->encode("a▁b", {}), model->encode("a▁b", {}));
}

TEST_F(PublicLlama2, ModelAndJsonDescribeTheSameVocabulary) {
  NEEDS_PUBLIC_DATA();
  EXPECT_EQ(model->vocab_size(), 32000);
  EXPECT_EQ(json->vocab_size(), 32000);
  for (Token token = 0; token < 32000; ++token) {
    ASSERT_EQ(model->piece_bytes(token, false), json->piece_bytes(token, false)) << token;
    ASSERT_EQ(model->is_control(token), json->is_control(token)) << token;
  }
  for (const auto& tokenizer : {model, json}) {
    EXPECT_EQ(tokenizer->bos(), 1);
    EXPECT_EQ(tokenizer->eos(), 2);
    EXPECT_EQ(tokenizer->find("</s>"), 2);
    EXPECT_EQ(tokenizer->piece_bytes(-1, false), "");
    EXPECT_EQ(tokenizer->piece_bytes(32000, false), "");
    EXPECT_EQ(tokenizer->encode("", {}), std::vector<Token>{1});
  }
}

TEST_F(PublicLlama2, SpecialTokensAreFoundOnlyWhenAsked) {
  NEEDS_PUBLIC_DATA();
  for (const auto& tokenizer : {model, json}) {
    const auto tokens = tokenizer->encode("Hello</s><s>world", test::kWithoutBos);
    EXPECT_EQ(tokens, (std::vector<Token>{15043, 2, 1, 3186}));
    EXPECT_EQ(tokenizer->decode(tokens), "Hello world") << "a space goes before every stretch of text";
    const auto spelled = tokenizer->encode("Hello</s>", test::kPlainText);
    EXPECT_EQ(tokenizer->decode(spelled), "Hello</s>");
  }
}

TEST_F(PublicLlama2, WithoutLegacyOnlyTheStartOfATextGetsASpace) {
  NEEDS_PUBLIC_DATA();
  TokenizerConfig config;
  config.legacy = false;
  const auto tokenizer =
      parse_sentencepiece(test::read_file(llama2() / "tokenizer.model"), "tokenizer.model", config);
  const auto tokens = tokenizer->encode("Hello<s>world", test::kWithoutBos);
  EXPECT_EQ(tokens, (std::vector<Token>{15043, 1, tokenizer->find("world").value()}));
  EXPECT_EQ(tokenizer->decode(tokens), "Helloworld");
}

TEST_F(PublicLlama2, LongLinesWithoutSpacesEncodeQuickly) {
  NEEDS_PUBLIC_DATA();
  std::string line;
  for (uint64_t i = 0; line.size() < 100'000; ++i) line += "abcdefghijklmnopqrstuvwxyz"[i * i % 26];
  const auto start = std::chrono::steady_clock::now();
  const auto tokens = json->encode(line, {});
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_EQ(tokens, model->encode(line, {}));
  EXPECT_LT(seconds, 5.0) << "quadratic time would be far above; plain builds take some 20 ms";
}

TEST(SentencePiece, TheDefaultModelGivesTheReferenceTokens) {
  const auto tokenizer =
      load_tokenizer({TokenizerSource::Kind::kSentencePieceModel, test::default_model() / "tokenizer.model"});
  for (int i = 0; i < 3; ++i) {
    const auto reference = nlohmann::json::parse(
        test::read_file(test::reference_logits() / ("target_" + std::to_string(i) + ".json")));
    const auto prompt = reference["prompt"].get<std::string>();
    const auto ids = reference["ids"].get<std::vector<Token>>();
    EXPECT_EQ(tokenizer->encode(prompt, {}), ids);
    EXPECT_EQ(tokenizer->decode(ids), prompt);
    const auto greedy = reference["greedy_ids"].get<std::vector<Token>>();
    EXPECT_EQ(tokenizer->decode(greedy), reference["greedy_text"].get<std::string>());
  }
}

TEST(SentencePiece, TheDefaultModelBringsRandomTextBack) {
  const auto path = test::default_model() / "tokenizer.model";
  const auto tokenizer = load_tokenizer({TokenizerSource::Kind::kSentencePieceModel, path});
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    const std::string line = test::random_line(random);
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(line, test::kPlainText)), line);
  }
}

TEST(SentencePiece, AddedTokensOfTheSettingsExtendTheVocabulary) {
  const auto path = test::default_model() / "tokenizer.model";
  const auto config = parse_tokenizer_config(
      R"({"add_bos_token": false, "eos_token": {"content": "<|im_end|>"}, "added_tokens_decoder": {
          "4096": {"content": "<|im_start|>", "special": true}, "4097": {"content": "<|im_end|>", "special": true},
          "4098": {"content": "<tool>", "special": false}}})",
      "tokenizer_config.json");
  const auto tokenizer = parse_sentencepiece(test::read_file(path), "tokenizer.model", config);
  EXPECT_EQ(tokenizer->vocab_size(), 4099);
  EXPECT_EQ(tokenizer->eos(), 4097);
  EXPECT_EQ(tokenizer->encode("<|im_start|><tool><|im_end|>", {}), (std::vector<Token>{4096, 4098, 4097}));
  EXPECT_EQ(tokenizer->decode({4096, 4098, 4097}), "<tool>");
}

TEST(SentencePiece, TextThatIsNotUtf8IsAnErrorWithTheOffset) {
  const auto path = test::default_model() / "tokenizer.model";
  const auto tokenizer = load_tokenizer({TokenizerSource::Kind::kSentencePieceModel, path});
  const auto message = test::bad_input_message([&] { tokenizer->encode("abc\xC3(", {}); });
  EXPECT_NE(message.find("at byte 3"), std::string::npos) << message;
}

}  // namespace
}  // namespace verbatim
