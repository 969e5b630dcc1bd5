#include "drafting/shadow_sequence.h"

#include "support/other_vocabulary.h"
#include "text/tokenizer_support.h"

namespace verbatim {
namespace shadow_sequence_test {
namespace {

std::shared_ptr<const Tokenizer> small() {
  return load_tokenizer(
      {TokenizerSource::Kind::kSentencePieceModel, test::default_model() / "tokenizer.model"});
}

std::shared_ptr<const Tokenizer> gguf(const std::filesystem::path& path) {
  return load_tokenizer({TokenizerSource::Kind::kGguf, test::public_data() / path});
}

struct Pair {
  std::shared_ptr<const Tokenizer> from;
  std::shared_ptr<const Tokenizer> to;
};

/// Sequences in one vocabulary that are followed in another. "own": the tokenizer of the repository's models
/// and one with fewer of its pieces; "public": Llama 2's, GPT-2's and that of a model of stories.
class ShadowSequenceOf : public testing::TestWithParam<std::string> {
 protected:
  static bool own() { return GetParam() == "own"; }
  static std::shared_ptr<const Tokenizer> other() {
    return own() ? test::reduced_tokenizer() : test::llama2_tokenizer();
  }
  static std::shared_ptr<const Tokenizer> least() {
    return own() ? test::reduced_tokenizer() : gguf("models/stories260K/stories260K-f32.gguf");
  }
  static std::vector<Pair> pairs() {
    if (own()) return {{small(), other()}, {other(), small()}};
    const auto gpt2 = gguf("tokenizers/gguf-vocabs/ggml-vocab-gpt-2.gguf");
    return {{small(), other()}, {other(), small()}, {gpt2, other()}, {other(), gpt2}, {least(), small()}};
  }
};

const auto source_name = [](const auto& info) { return info.param; };
INSTANTIATE_TEST_SUITE_P(Own, ShadowSequenceOf, testing::Values("own"), source_name);
INSTANTIATE_TEST_SUITE_P(Public, ShadowSequenceOf, testing::Values("public"), source_name);

std::string random_text(std::mt19937& random, int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) text += test::random_line(random) + "\n";
  return text;
}

constexpr int64_t kLong = 1 << 20;

TEST_P(ShadowSequenceOf, SaysWhatTheSequenceSays) {
  std::mt19937 random(1);
  for (const Pair& pair : pairs()) {
    ShadowSequence shadow(pair.from, pair.to, kLong);
    for (int i = 0; i < 20; ++i) {
      const std::string text = random_text(random, 8);
      const std::vector<Token> tokens = pair.from->encode(text, test::kPlainText);
      for (size_t length = 0; length < tokens.size(); length += 1 + random() % 40) {
        shadow.follow({tokens.data(), length});
        const std::vector<Token> begin(tokens.begin(), tokens.begin() + static_cast<int64_t>(length));
        ASSERT_EQ(pair.to->decode(shadow.sequence().tokens) + shadow.pending(), pair.from->decode(begin));
      }
    }
  }
}

TEST_P(ShadowSequenceOf, IsTheSameHoweverTheSequenceCameAbout) {
  std::mt19937 random(2);
  for (const Pair& pair : pairs()) {
    const std::vector<Token> tokens = pair.from->encode(random_text(random, 20), {});
    ShadowSequence grown(pair.from, pair.to, kLong);
    for (int i = 0; i < 100; ++i) {
      const size_t length = random() % tokens.size();
      ShadowSequence fresh(pair.from, pair.to, kLong);
      grown.follow({tokens.data(), length});
      fresh.follow({tokens.data(), length});
      ASSERT_EQ(grown.sequence().tokens, fresh.sequence().tokens);
      ASSERT_EQ(grown.pending(), fresh.pending());
    }
  }
}

// What a cache of the shadow holds stays of use.
TEST_P(ShadowSequenceOf, KeepsAllButItsEndWhenTheSequenceGoesOn) {
  const auto from = small();
  const auto to = other();
  const std::string text = test::read_file(test::own_data() / "text.txt").substr(0, 18'000);
  const std::vector<Token> tokens = from->encode(text, {});
  ShadowSequence shadow(from, to, kLong);
  std::vector<Token> before;
  size_t changed = 0;
  for (size_t length = 100; length < tokens.size(); ++length) {
    shadow.follow({tokens.data(), length});
    const std::vector<Token>& now = shadow.sequence().tokens;
    const auto differs = std::mismatch(before.begin(), before.end(), now.begin(), now.end()).first;
    const auto lost = static_cast<size_t>(before.end() - differs);
    EXPECT_LE(lost, 40u);
    changed += lost;
    before = now;
  }
  EXPECT_LT(changed, tokens.size());
}

TEST_P(ShadowSequenceOf, BearsAnyTokens) {
  std::mt19937 random(3);
  for (const Pair& pair : pairs()) {
    ShadowSequence shadow(pair.from, pair.to, kLong);
    std::vector<Token> tokens;
    for (int i = 0; i < 400; ++i) {
      // Many control and byte tokens, some beyond the vocabulary, as a model with padded rows may say.
      const auto bound = static_cast<uint32_t>(pair.from->vocab_size() + 100);
      tokens.push_back(static_cast<Token>(random() % (random() % 2 == 0 ? 259 : bound)));
      if (random() % 50 == 0) tokens.resize(random() % tokens.size());
      shadow.follow(tokens);
      for (const Token token : shadow.sequence().tokens) {
        ASSERT_GE(token, 0);
        ASSERT_LT(token, pair.to->vocab_size());
      }
      ASSERT_LT(shadow.pending().size(), 4u);
    }
  }
}

TEST_P(ShadowSequenceOf, TranslatesControlTokens) {
  const auto from = other();
  const auto to = small();
  std::vector<Token> tokens = from->encode("One two", {});
  tokens.push_back(*from->eos());
  for (const Token token : from->encode("three", test::kPlainText)) tokens.push_back(token);
  ShadowSequence shadow(from, to, kLong);
  shadow.follow(tokens);
  const std::vector<Token>& said = shadow.sequence().tokens;
  EXPECT_EQ(said.front(), *to->bos());
  EXPECT_EQ(std::count(said.begin(), said.end(), *to->bos()), 1);
  EXPECT_EQ(std::count(said.begin(), said.end(), *to->eos()), 1);
}

TEST_P(ShadowSequenceOf, LeavesOutHalfACharacter) {
  const auto from = other();
  std::vector<Token> tokens = from->encode("na", {});
  ShadowSequence shadow(from, small(), kLong);
  tokens.push_back(*from->find("<0xC3>"));
  shadow.follow(tokens);
  EXPECT_EQ(shadow.pending(), "\xC3");
  tokens.push_back(*from->find("<0xAF>"));
  shadow.follow(tokens);
  EXPECT_EQ(shadow.pending(), "");
  EXPECT_EQ(small()->decode(shadow.sequence().tokens), "naï");
}

TEST_P(ShadowSequenceOf, ForgetsTheOlderHalfWhenItIsFull) {
  const auto from = other();
  const auto to = own() ? small() : least();
  const std::string text = test::read_file(test::own_data() / "text.txt").substr(0, 6'000);
  const std::vector<Token> tokens = from->encode(text, {.parse_special = false});
  constexpr int64_t kMost = 300;
  ShadowSequence shadow(from, to, kMost);
  for (size_t length = 1; length <= tokens.size(); length += 3) {
    shadow.follow({tokens.data(), length});
    const std::vector<Token>& said = shadow.sequence().tokens;
    ASSERT_LE(said.size(), static_cast<size_t>(kMost));
    if (length > 500) {
      ASSERT_GE(said.size(), static_cast<size_t>(kMost) / 4) << length;
    }
    const std::string whole = from->decode({tokens.begin(), tokens.begin() + static_cast<int64_t>(length)});
    const std::string end = inner_bytes(*to, said);
    ASSERT_TRUE(whole.ends_with(end) || " " + whole == end) << end;
    EXPECT_EQ(said.front(), *to->bos());
  }
  // From the beginning once more.
  shadow.follow({tokens.data(), 10});
  EXPECT_EQ(to->decode(shadow.sequence().tokens), from->decode({tokens.begin(), tokens.begin() + 10}));
}

}  // namespace
}  // namespace shadow_sequence_test
}  // namespace verbatim
