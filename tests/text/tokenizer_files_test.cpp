#include "text/tokenizer_files.h"

#include <gtest/gtest.h>

#include "support/trained_gguf.h"
#include "tokenizer_support.h"

namespace verbatim {
namespace tokenizer_files_test {
namespace {

using Kind = TokenizerSource::Kind;

/// A source whose files lie in memory, as inside a packed file.
struct Embedded {
  TokenizerFiles files;
  TokenizerSource source;

  explicit Embedded(const TokenizerSource& from) : files(read_tokenizer_files(from)) {
    source.kind = from.kind;
    source.path = "model.vbt";
    for (const auto& [name, contents] : files.contents) source.embedded[name] = contents;
  }
};

void expect_same(const TokenizerSource& source) {
  const auto expected = load_tokenizer(source);
  const Embedded embedded(source);
  const auto actual = load_tokenizer(embedded.source);
  EXPECT_EQ(actual->kind(), expected->kind());
  ASSERT_EQ(actual->vocab_size(), expected->vocab_size());
  EXPECT_EQ(actual->bos(), expected->bos());
  EXPECT_EQ(actual->eos(), expected->eos());
  for (Token token = 0; token < expected->vocab_size(); ++token) {
    ASSERT_EQ(actual->piece_bytes(token, false), expected->piece_bytes(token, false)) << token;
    ASSERT_EQ(actual->is_control(token), expected->is_control(token)) << token;
  }
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const std::string line = test::random_line(random);
    for (const bool special : {false, true}) {
      const Tokenizer::EncodeOptions options = {.add_bos = true, .parse_special = special};
      ASSERT_EQ(actual->encode(line, options), expected->encode(line, options)) << line;
    }
  }
}

std::filesystem::path data(const char* name) {
  return test::public_data() / "tokenizers" / name;
}

TEST(EmbeddedTokenizer, IsThatOfASentencePieceModel) {
  expect_same({Kind::kSentencePieceModel, test::default_model() / "tokenizer.model"});
}
TEST(PublicEmbeddedTokenizer, IsThatOfATokenizerJson) {
  NEEDS_PUBLIC_DATA();
  expect_same({Kind::kTokenizerJson, data("llama-2/tokenizer.json")});
}
TEST(PublicEmbeddedTokenizer, IsThatOfAVocabJsonWithItsMerges) {
  NEEDS_PUBLIC_DATA();
  expect_same({Kind::kTokenizerJson, data("opt/vocab.json")});
}
TEST(EmbeddedTokenizer, IsThatOfAGgufFile) {
  expect_same({Kind::kGguf, test::draft_gguf()});
}
TEST(PublicEmbeddedTokenizer, IsThatOfAGgufFile) {
  NEEDS_PUBLIC_DATA();
  expect_same({Kind::kGguf, data("gguf-vocabs/ggml-vocab-gpt-2.gguf")});
  expect_same({Kind::kGguf, data("gguf-vocabs/ggml-vocab-llama-spm.gguf")});
}

TEST(EmbeddedTokenizer, HoldsTheSettingsBesideTheVocabulary) {
  const Embedded embedded({Kind::kSentencePieceModel, test::default_model() / "tokenizer.model"});
  EXPECT_EQ(embedded.source.embedded.size(), 2u);
  EXPECT_TRUE(embedded.source.embedded.contains("tokenizer_config.json"));
}

TEST(EmbeddedTokenizer, IsRefusedWithoutItsVocabulary) {
  TokenizerSource source;
  source.path = "model.vbt";
  source.embedded["notes.txt"] = "hello";
  for (const Kind kind : {Kind::kSentencePieceModel, Kind::kTokenizerJson, Kind::kGguf}) {
    source.kind = kind;
    const std::string message = test::bad_input_message([&] { load_tokenizer(source); });
    EXPECT_NE(message.find("model.vbt has no"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace tokenizer_files_test
}  // namespace verbatim
