#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tokenizer_support.h"

namespace verbatim {
namespace {

std::shared_ptr<const Tokenizer> default_tokenizer() {
  return load_tokenizer(
      {TokenizerSource::Kind::kSentencePieceModel, test::default_model() / "tokenizer.model"});
}

TEST(StreamingDetokenizer, HoldsBackHalfACharacter) {
  const auto tokenizer = default_tokenizer();
  std::vector<Token> tokens;
  for (const char* text : {"<0xF0>", "<0x9F>", "<0xA6>", "<0x99>"})
    tokens.push_back(tokenizer->find(text).value());
  StreamingDetokenizer stream(*tokenizer, true);
  EXPECT_EQ(stream.push(tokens[0]), "");
  EXPECT_EQ(stream.push(tokens[1]), "");
  EXPECT_EQ(stream.push(tokens[2]), "");
  EXPECT_EQ(stream.push(tokens[3]), "🦙");
  EXPECT_EQ(stream.finish(), "");
}

TEST(StreamingDetokenizer, PassesOnBytesThatCanNeverBecomeCharacters) {
  const auto tokenizer = default_tokenizer();
  StreamingDetokenizer stream(*tokenizer, true);
  EXPECT_EQ(stream.push(tokenizer->find("<0xFF>").value()), "\xFF");
  EXPECT_EQ(stream.push(tokenizer->find("<0xE2>").value()), "");
  EXPECT_EQ(stream.push(tokenizer->find("a").value()),
            "\xE2"
            "a");
  EXPECT_EQ(stream.push(tokenizer->find("<0xE2>").value()), "");
  EXPECT_EQ(stream.finish(), "\xE2");
  EXPECT_EQ(stream.finish(), "");
}

void expect_pieces_joined_equal_decode(const Tokenizer& tokenizer) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Token> tokens;
    if (round % 2 == 0) {
      tokens = tokenizer.encode(test::random_line(random), {});
    } else {  // any tokens at all: mostly bytes that form no text
      for (int i = 0; i < 40; ++i) tokens.push_back(static_cast<Token>(random() % 300));
    }
    StreamingDetokenizer stream(tokenizer, true);
    std::string joined;
    for (const Token token : tokens) {
      const std::string text = stream.push(token);
      if (round % 2 == 0) {
        EXPECT_EQ(find_invalid_utf8(text), std::string::npos) << "half a character was passed on";
      }
      joined += text;
    }
    joined += stream.finish();
    ASSERT_EQ(joined, tokenizer.decode(tokens));
  }
}

TEST(StreamingDetokenizer, PiecesJoinedEqualDecode) {
  expect_pieces_joined_equal_decode(*default_tokenizer());
}
TEST(PublicStreamingDetokenizer, PiecesJoinedEqualDecode) {
  NEEDS_PUBLIC_DATA();
  const auto path = test::public_data() / "tokenizers" / "llama-2" / "tokenizer.model";
  expect_pieces_joined_equal_decode(*load_tokenizer({TokenizerSource::Kind::kSentencePieceModel, path}));
}

TEST(PublicStreamingDetokenizer, InTheMiddleOfATextTheFirstSpaceStays) {
  NEEDS_PUBLIC_DATA();
  const auto path = test::public_data() / "tokenizers" / "llama-2" / "tokenizer.model";
  const auto tokenizer = load_tokenizer({TokenizerSource::Kind::kSentencePieceModel, path});
  const Token hello = tokenizer->find("▁Hello").value();
  EXPECT_EQ(StreamingDetokenizer(*tokenizer, true).push(hello), "Hello");
  EXPECT_EQ(StreamingDetokenizer(*tokenizer, false).push(hello), " Hello");
}

}  // namespace
}  // namespace verbatim
