#include <gtest/gtest.h>

#include <sstream>

#include "text/tokenizer_json.h"
#include "tokenizer_support.h"

namespace verbatim {
namespace {

std::filesystem::path opt() {
  return test::public_data() / "tokenizers" / "opt";
}

std::shared_ptr<const Tokenizer> load_opt() {
  return load_tokenizer({TokenizerSource::Kind::kTokenizerJson, opt() / "vocab.json"});
}

TEST(PublicVocabJson, RandomTextSurvivesEncodingAndDecoding) {
  NEEDS_PUBLIC_DATA();
  const auto tokenizer = load_opt();
  std::mt19937 random(1);
  for (int i = 0; i < 10'000; ++i) {
    const std::string line = test::random_line(random);
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(line, test::kPlainText)), line);
  }
}

TEST(PublicVocabJson, HasTheSameWordsAsGpt2UnderOtherNumbers) {
  NEEDS_PUBLIC_DATA();
  const auto tokenizer = load_opt();
  const auto gpt2 =
      load_tokenizer({TokenizerSource::Kind::kGguf,
                      test::public_data() / "tokenizers" / "gguf-vocabs" / "ggml-vocab-gpt-2.gguf"});
  std::istringstream text(test::read_file(test::public_data() / "text" / "wikitext2_test.txt"));
  int lines = 0;
  for (std::string line; lines < 500 && std::getline(text, line); ++lines) {
    const auto ours = tokenizer->encode(line, test::kPlainText);
    const auto theirs = gpt2->encode(line, test::kPlainText);
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      ASSERT_EQ(tokenizer->piece_bytes(ours[i], false), gpt2->piece_bytes(theirs[i], false));
    }
  }
}

TEST(PublicVocabJson, TheSettingsNameTheSpecialTokens) {
  NEEDS_PUBLIC_DATA();
  const auto tokenizer = load_opt();
  EXPECT_EQ(tokenizer->bos(), 2);
  EXPECT_EQ(tokenizer->eos(), 2);
  EXPECT_EQ(tokenizer->encode("Hello</s>", {}), (std::vector<Token>{2, tokenizer->find("Hello").value(), 2}));
  EXPECT_TRUE(tokenizer->is_control(tokenizer->find("<pad>").value()));
}

TEST(VocabJson, MissingOrMalformedMergesAreErrors) {
  test::TemporaryFolder folder;
  const auto path = folder.write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  const auto load = [&] { load_tokenizer({TokenizerSource::Kind::kTokenizerJson, path}); };
  EXPECT_NE(test::bad_input_message(load).find("merges.txt"), std::string::npos);
  folder.write("merges.txt", "#version: 0.2\na b\n");
  EXPECT_NO_THROW(load());
  folder.write("merges.txt", "#version: 0.2\na c\n");
  EXPECT_NE(test::bad_input_message(load).find("'a' and 'c'"), std::string::npos);
  folder.write("merges.txt", "ab\n");
  EXPECT_NE(test::bad_input_message(load).find("no space"), std::string::npos);
}

TEST(TokenizerSettings, MalformedFilesAreErrorsThatNameTheFile) {
  test::TemporaryFolder folder;
  const auto path = folder.write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  folder.write("merges.txt", "a b\n");
  for (const char* text :
       {"{", "[]", R"({"add_bos_token": 1})", R"({"bos_token": 5})", R"({"added_tokens_decoder": []})",
        R"({"added_tokens_decoder": {"x": {}}})", R"({"added_tokens_decoder": {"1": {}}})",
        R"({"added_tokens_decoder": {"-1": {"content": "c"}}})"}) {
    folder.write("tokenizer_config.json", text);
    const auto message = test::bad_input_message([&] {
      load_tokenizer({TokenizerSource::Kind::kTokenizerJson, path});
    });
    EXPECT_NE(message.find("tokenizer_config.json: "), std::string::npos) << message;
  }
}

TEST(Tokenizer, NoVocabularyIsAnError) {
  EXPECT_NE(test::bad_input_message([] { load_tokenizer({}); }).find("no vocabulary"), std::string::npos);
}

}  // namespace
}  // namespace verbatim
