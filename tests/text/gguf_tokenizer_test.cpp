#include <gtest/gtest.h>

#include <sstream>

#include "support/trained_gguf.h"
#include "tokenizer_support.h"

namespace verbatim {
namespace {

class PublicGgufVocabulary : public testing::TestWithParam<const char*> {
 protected:
  static std::filesystem::path path() {
    return test::public_data() / "tokenizers" / "gguf-vocabs" / GetParam();
  }
  static std::shared_ptr<const Tokenizer> load() {
    return load_tokenizer({TokenizerSource::Kind::kGguf, path()});
  }
};

TEST_P(PublicGgufVocabulary, GivesTheExpectedTokens) {
  NEEDS_PUBLIC_DATA();
  const auto tokenizer = load();
  const auto inputs = test::split_at(test::read_file(path().string() + ".inp"), "\n__ggml_vocab_test__\n");
  std::istringstream expected(test::read_file(path().string() + ".out"));
  size_t checked = 0;
  for (std::string line; std::getline(expected, line); ++checked) {
    std::istringstream numbers(line);
    std::vector<Token> ids;
    for (Token id; numbers >> id;) ids.push_back(id);
    ASSERT_LT(checked, inputs.size());
    EXPECT_EQ(tokenizer->encode(inputs[checked], test::kPlainText), ids)
        << "input " << checked << ": " << inputs[checked];
    EXPECT_EQ(tokenizer->decode(ids), inputs[checked]);
  }
  EXPECT_GE(checked, 46u);
}

TEST_P(PublicGgufVocabulary, RandomTextSurvivesEncodingAndDecoding) {
  NEEDS_PUBLIC_DATA();
  const auto tokenizer = load();
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) {
    const std::string line = test::random_line(random);
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(line, test::kPlainText)), line);
  }
}

INSTANTIATE_TEST_SUITE_P(, PublicGgufVocabulary,
                         testing::Values("ggml-vocab-gpt-2.gguf", "ggml-vocab-deepseek-coder.gguf",
                                         "ggml-vocab-llama-spm.gguf"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

TEST(PublicGgufTokenizer, PutsTheBeginningOfSequenceTokenWhereTheFileSaysSo) {
  NEEDS_PUBLIC_DATA();
  const auto folder = test::public_data() / "tokenizers" / "gguf-vocabs";
  const auto load = [&](const char* name) {
    return load_tokenizer({TokenizerSource::Kind::kGguf, folder / name});
  };
  EXPECT_EQ(load("ggml-vocab-llama-spm.gguf")->encode("Hello", {}), (std::vector<Token>{1, 15043}));
  EXPECT_EQ(load("ggml-vocab-gpt-2.gguf")->encode("Hello", {}), (std::vector<Token>{15496}));
  EXPECT_EQ(load("ggml-vocab-deepseek-coder.gguf")->encode("Hello", {}).front(), 32013);
}

TEST(PublicGgufTokenizer, RecognisesControlTokensOnlyWhenAsked) {
  NEEDS_PUBLIC_DATA();
  const auto path = test::public_data() / "tokenizers" / "gguf-vocabs" / "ggml-vocab-gpt-2.gguf";
  const auto tokenizer = load_tokenizer({TokenizerSource::Kind::kGguf, path});
  EXPECT_EQ(tokenizer->encode("<|endoftext|>", test::kWithoutBos), (std::vector<Token>{50256}));
  EXPECT_GT(tokenizer->encode("<|endoftext|>", test::kPlainText).size(), 1u);
  EXPECT_TRUE(tokenizer->is_control(50256));
  EXPECT_EQ(tokenizer->decode({15496, 50256}), "Hello");
  EXPECT_EQ(tokenizer->eos(), 50256);
  EXPECT_EQ(tokenizer->vocab_size(), 50257);
  EXPECT_EQ(tokenizer->kind(), "byte-level bpe");
}

TEST(PublicGgufTokenizer, AgreesWithTheSentencePieceModelOfTheSameVocabulary) {
  NEEDS_PUBLIC_DATA();
  const auto folder = test::public_data() / "tokenizers";
  const auto gguf =
      load_tokenizer({TokenizerSource::Kind::kGguf, folder / "gguf-vocabs" / "ggml-vocab-llama-spm.gguf"});
  const auto model =
      load_tokenizer({TokenizerSource::Kind::kSentencePieceModel, folder / "llama-2" / "tokenizer.model"});
  std::mt19937 random(12);
  for (int i = 0; i < 3000; ++i) {
    const std::string line = test::random_line(random);
    ASSERT_EQ(gguf->encode(line, {}), model->encode(line, {})) << line;
  }
}

TEST(GgufTokenizer, AgreesWithTheSentencePieceModelThatAFileWasMadeOf) {
  const auto gguf = load_tokenizer({TokenizerSource::Kind::kGguf, test::draft_gguf()});
  const auto model =
      load_tokenizer({TokenizerSource::Kind::kSentencePieceModel, test::draft_model() / "tokenizer.model"});
  std::mt19937 random(12);
  for (int i = 0; i < 3000; ++i) {
    const std::string line = test::random_line(random);
    ASSERT_EQ(gguf->encode(line, {}), model->encode(line, {})) << line;
    ASSERT_EQ(gguf->decode(gguf->encode(line, test::kPlainText)), line);
  }
}

TEST(GgufTokenizer, AFileWithoutVocabularyIsAnError) {
  test::TemporaryFolder folder;
  const auto path = folder.write("empty.gguf", std::string("GGUF\3\0\0\0", 8) + std::string(16, '\0'));
  const auto message = test::bad_input_message([&] { load_tokenizer({TokenizerSource::Kind::kGguf, path}); });
  EXPECT_NE(message.find("tokenizer.ggml.model"), std::string::npos) << message;
}

}  // namespace
}  // namespace verbatim
