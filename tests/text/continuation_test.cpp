#include "text/continuation.h"

#include "support/trained_gguf.h"
#include "tokenizer_support.h"

namespace verbatim {
namespace {

using Tokenizers = std::vector<std::shared_ptr<const Tokenizer>>;

Tokenizers own_tokenizers() {
  return {
      load_tokenizer({TokenizerSource::Kind::kSentencePieceModel, test::default_model() / "tokenizer.model"}),
      load_tokenizer({TokenizerSource::Kind::kGguf, test::draft_gguf()}),
  };
}

Tokenizers public_tokenizers() {
  const auto folder = test::public_data();
  const auto gguf = [&](const std::filesystem::path& path) {
    return load_tokenizer({TokenizerSource::Kind::kGguf, folder / path});
  };
  return {
      load_tokenizer({TokenizerSource::Kind::kSentencePieceModel,
                      folder / "tokenizers" / "llama-2" / "tokenizer.model"}),
      load_tokenizer(
          {TokenizerSource::Kind::kTokenizerJson, folder / "tokenizers" / "llama-2" / "tokenizer.json"}),
      gguf("models/stories260K/stories260K-f32.gguf"),
      gguf("tokenizers/gguf-vocabs/ggml-vocab-gpt-2.gguf"),
      gguf("tokenizers/gguf-vocabs/ggml-vocab-deepseek-coder.gguf"),
  };
}

void expect_nothing_added(const Tokenizers& tokenizers) {
  for (const auto& tokenizer : tokenizers) {
    const ContinuationEncoder encoder(*tokenizer);
    for (const std::string text :
         {"world", " world", "  two spaces", "\n    indented", "é", "日本", "x", "</s>"}) {
      std::vector<Token> tokens;
      EXPECT_TRUE(encoder.encode(text, tokens)) << tokenizer->kind() << ": " << text;
      EXPECT_EQ(inner_bytes(*tokenizer, tokens), text) << tokenizer->kind();
    }
  }
}

TEST(ContinuationEncoder, AddsNothingToATextThatGoesOn) {
  expect_nothing_added(own_tokenizers());
}
TEST(PublicContinuationEncoder, AddsNothingToATextThatGoesOn) {
  NEEDS_PUBLIC_DATA();
  expect_nothing_added(public_tokenizers());
}

void expect_exact_random_text(const Tokenizers& tokenizers) {
  for (const auto& tokenizer : tokenizers) {
    const ContinuationEncoder encoder(*tokenizer);
    std::mt19937 random(7);
    int exact = 0;
    for (int i = 0; i < 500; ++i) {
      const std::string line = test::random_line(random);
      std::vector<Token> tokens;
      if (!encoder.encode(line, tokens)) continue;
      ++exact;
      ASSERT_EQ(inner_bytes(*tokenizer, tokens), line) << tokenizer->kind();
    }
    EXPECT_GT(exact, 480) << tokenizer->kind() << " of " << tokenizer->vocab_size() << " tokens";
  }
}

TEST(ContinuationEncoder, SaysWhetherRandomTextIsExact) {
  expect_exact_random_text(own_tokenizers());
}
TEST(PublicContinuationEncoder, SaysWhetherRandomTextIsExact) {
  NEEDS_PUBLIC_DATA();
  expect_exact_random_text(public_tokenizers());
}

void expect_ends_as_in_whole_texts(const Tokenizers& tokenizers) {
  const std::string text = "def add(first, second): return the sum of first and second";
  for (const auto& tokenizer : tokenizers) {
    const ContinuationEncoder encoder(*tokenizer);
    const std::vector<Token> whole = tokenizer->encode(text, test::kPlainText);
    size_t cuts = 0;
    for (size_t i = 1; i < whole.size(); ++i) {
      if (!begins_word(*tokenizer, whole, i)) continue;
      ++cuts;
      std::vector<Token> end;
      EXPECT_TRUE(encoder.encode(inner_bytes(*tokenizer, std::span(whole).subspan(i)), end));
      EXPECT_EQ(end, std::vector<Token>(whole.begin() + static_cast<int64_t>(i), whole.end()));
    }
    EXPECT_GT(cuts, 6u) << tokenizer->kind();
  }
}

TEST(ContinuationEncoder, EncodesTheEndOfATextAsTheWholeTextHasIt) {
  expect_ends_as_in_whole_texts(own_tokenizers());
}
TEST(PublicContinuationEncoder, EncodesTheEndOfATextAsTheWholeTextHasIt) {
  NEEDS_PUBLIC_DATA();
  expect_ends_as_in_whole_texts(public_tokenizers());
}

TEST(BeginsWord, IsNoPlaceInsideARunOfSpaces) {
  const auto tokenizer =
      load_tokenizer({TokenizerSource::Kind::kSentencePieceModel, test::default_model() / "tokenizer.model"});
  const std::vector<Token> tokens = tokenizer->encode("if x:\n        return y", test::kPlainText);
  for (size_t i = 1; i < tokens.size(); ++i) {
    if (!begins_word(*tokenizer, tokens, i)) continue;
    const std::string after = inner_bytes(*tokenizer, std::span(tokens).subspan(i));
    EXPECT_TRUE(after.starts_with(" x:") || after.starts_with(" y")) << after;
  }
}

}  // namespace
}  // namespace verbatim
