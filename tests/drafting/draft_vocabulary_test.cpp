#include "drafting/draft_vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "support/drafting.h"
#include "support/packed.h"
#include "support/random.h"

namespace verbatim {
namespace {

using test::Tokens;

/// What the pieces of the choice say.
std::set<std::string> bytes_of(const Tokenizer& tokenizer, const Tokens& choice) {
  std::set<std::string> bytes;
  for (const int32_t token : choice) bytes.insert(tokenizer.piece_bytes(token, false));
  return bytes;
}

void expect_choice(const Tokenizer& tokenizer, int32_t tokens) {
  for (const int32_t count : {1, 2, 7, 300, 1024, 2500, tokens - 1, tokens, tokens + 5}) {
    const Tokens choice = draft_vocabulary(&tokenizer, tokens, count);
    EXPECT_EQ(std::ssize(choice), std::min(count, tokens));
    EXPECT_TRUE(std::is_sorted(choice.begin(), choice.end(), std::less_equal<>())) << "with " << count;
    EXPECT_GE(choice.front(), 0);
    EXPECT_LT(choice.back(), tokens);
    EXPECT_TRUE(std::binary_search(choice.begin(), choice.end(), *tokenizer.eos())) << "with " << count;
  }
}

/// How many tokens of the choice say one byte.
int64_t single_bytes(const Tokenizer& tokenizer, const Tokens& choice) {
  return std::count_if(choice.begin(), choice.end(),
                       [&](int32_t token) { return tokenizer.piece_bytes(token, false).size() == 1; });
}

void expect_printable(const std::set<std::string>& bytes) {
  for (char c = ' '; c <= '~'; ++c) {
    if (c == '&') continue;  // the default model spells it as a byte
    EXPECT_TRUE(bytes.contains(std::string(1, c))) << c;
  }
  for (const char* const often : {"\n", "\t", " the", "in", "    "}) {
    EXPECT_TRUE(bytes.contains(often)) << often;
  }
}

TEST(DraftVocabulary, OfTheDefaultModelHasItsCharactersAndFrequentPieces) {
  const auto tokenizer = test::any_tokenizer();
  expect_choice(*tokenizer, 4096);
  const Tokens choice = draft_vocabulary(tokenizer.get(), 4096, 1024);
  expect_printable(bytes_of(*tokenizer, choice));
  // Beside them the first merges, without gaps, and none of the byte tokens that no line needs.
  EXPECT_EQ(choice[0], *tokenizer->eos());
  EXPECT_EQ(choice[4], 259);
  const auto alphabet = std::lower_bound(choice.begin(), choice.end(), 4002);
  EXPECT_EQ(choice.end() - alphabet, 94);
  EXPECT_EQ(*(alphabet - 1), 259 + (1024 - 4 - 94) - 1);
  // Where there is hardly any room, the most frequent characters share it with pieces.
  const Tokens few = draft_vocabulary(tokenizer.get(), 4096, 40);
  EXPECT_EQ(few.back(), 4011);
  EXPECT_EQ(few[29], 259 + 25);
}

TEST(DraftVocabulary, OfAModelWithMoreRowsThanTokensLeavesThoseOutFirst) {
  const auto tokenizer = test::any_tokenizer();
  expect_choice(*tokenizer, 4160);
  EXPECT_EQ(draft_vocabulary(tokenizer.get(), 4160, 1024), draft_vocabulary(tokenizer.get(), 4096, 1024));
  EXPECT_LT(draft_vocabulary(tokenizer.get(), 4160, 4096).back(), 4096);
}

TEST(PublicDraftVocabulary, OfLlama2HasItsFrequentCharacters) {
  NEEDS_PUBLIC_DATA();
  const auto folder = test::public_data() / "tokenizers" / "llama-2";
  for (const auto kind :
       {TokenizerSource::Kind::kSentencePieceModel, TokenizerSource::Kind::kTokenizerJson}) {
    const bool json = kind == TokenizerSource::Kind::kTokenizerJson;
    const auto tokenizer = load_tokenizer({kind, folder / (json ? "tokenizer.json" : "tokenizer.model")});
    expect_choice(*tokenizer, 32000);
    const Tokens choice = draft_vocabulary(tokenizer.get(), 32000, 1024);
    expect_printable(bytes_of(*tokenizer, choice));
    const auto alphabet = std::lower_bound(choice.begin(), choice.end(), 29871);
    EXPECT_EQ(choice.end() - alphabet, 256);  // of 2129
    EXPECT_EQ(*alphabet, 29871);
    EXPECT_EQ(choice.back(), 29871 + 255);
  }
}

TEST(PublicDraftVocabulary, OfBytePairsOfBytesIsTheirBeginning) {
  NEEDS_PUBLIC_DATA();
  const auto tokenizer =
      load_tokenizer({TokenizerSource::Kind::kGguf,
                      test::public_data() / "tokenizers" / "gguf-vocabs" / "ggml-vocab-gpt-2.gguf"});
  expect_choice(*tokenizer, tokenizer->vocab_size());
  const Tokens choice = draft_vocabulary(tokenizer.get(), tokenizer->vocab_size(), 2000);
  for (int32_t i = 0; i < 1999; ++i) ASSERT_EQ(choice[static_cast<size_t>(i)], i);
  EXPECT_EQ(choice.back(), *tokenizer->eos());
  EXPECT_EQ(single_bytes(*tokenizer, choice), 256);
}

TEST(DraftVocabulary, WithoutTokenizerIsTheFirstTokens) {
  EXPECT_EQ(draft_vocabulary(nullptr, 40, 4), (Tokens{0, 1, 2, 3}));
  EXPECT_EQ(std::ssize(draft_vocabulary(nullptr, 40, 50)), 40);
}

// Where rounding what was rounded changes nothing, the very logits of the whole output matrix. Elsewhere a
// draft may come out a little otherwise, never the text.
TEST(DraftHead, GivesTheLogitsOfItsTokens) {
  constexpr int64_t kColumns = 150;
  constexpr int64_t kInputs = 200;
  constexpr int64_t kRows = 3;
  std::vector<float> weights = test::random_floats(static_cast<size_t>(kColumns * kInputs), 1, 0.05f);
  for (size_t i = 0; i < weights.size(); i += 97) weights[i] = 0.0f;
  for (size_t i = 50; i < weights.size(); i += 131) weights[i] *= 1e-6f;
  for (float& weight : weights) weight = to_float(to_bfloat16(weight));
  Tokens tokens = {0, 3, 15, 16, 40, 41, 42, 99, 100, 131, 132, 133, 134, 135, 147, 148, 149};
  const LinearWeight whole =
      test::pack(kColumns, kInputs, weights, {Format::kBf16, Format::kMxfp4, Format::kMxbf16, Format::kBsfp});
  const std::vector<float> x = test::random_inputs(kRows, kInputs, 2);
  ThreadTeam team(2);
  LinearWorkspace workspace;
  for (const Reading reading : {Reading::kFull, Reading::kMxfp4W4A8, Reading::kMxfp4W4A16,
                                Reading::kMxbf16Full, Reading::kMxbf16Draft, Reading::kBsfpFull}) {
    const LinearWeight head = draft_head(whole, reading, tokens, team);
    EXPECT_EQ(head.columns, std::ssize(tokens));
    EXPECT_EQ(head.k, kInputs);
    const std::vector<float> all = test::multiply(whole, reading, x.data(), kRows, team, workspace);
    const std::vector<float> few = test::multiply(head, reading, x.data(), kRows, team, workspace);
    for (int64_t r = 0; r < kRows; ++r) {
      for (size_t i = 0; i < tokens.size(); ++i) {
        EXPECT_EQ(few[static_cast<size_t>(r * head.padded_columns()) + i],
                  all[static_cast<size_t>(r * whole.padded_columns() + tokens[i])])
            << reading_name(reading) << ", row " << r << ", token " << tokens[i];
      }
    }
  }
}

// Noise, penalties and filters belong to tokens, wherever a head has its columns.
TEST(DraftHead, DraftsItsTokensByTheirOwnNoise) {
  ThreadTeam team(1);
  const Decoder decoder = test::tiny_decoder(test::small_vocabulary(40));
  Evaluator evaluator(decoder, team);
  Evaluator reference(decoder, team);
  const Tokens tokens = {2, 7, 8, 9, 15, 21, 22, 30, 31, 33, 38};
  for (const float temperature : {0.0f, 0.9f}) {
    Sampler sampler({.repetition_penalty = 1.1f, .temperature = temperature, .top_k = 9, .seed = 3});
    NeuralDrafter drafter(evaluator, Reading::kMxfp4W4A8, DraftCache(), true);
    drafter.own_head(
        std::make_unique<LinearWeight>(draft_head(decoder.weights().head, Reading::kMxfp4W4A8, tokens, team)),
        tokens);
    Tokens text = {1, 5, 38, 7, 0, 22, 9};
    for (int round = 0; round < 12; ++round) {
      Sequence sequence = test::verified(text, evaluator);
      Draft draft;
      draft.want_distributions = true;
      drafter.propose(sequence, sampler, {.length = 1, .breadth = 3, .nodes = 3}, 10, draft);

      Sequence past = test::verified(text, reference);
      const Matrix<const float> logits =
          reference.evaluate(text, std::ssize(text) - 1, 1, Reading::kMxfp4W4A8, *past.cache);
      std::vector<float> masked(40, -std::numeric_limits<float>::infinity());
      for (const int32_t token : tokens) {
        masked[static_cast<size_t>(token)] = logits.row_span(0)[static_cast<size_t>(token)];
      }
      std::vector<Guess> guesses(3);
      guesses.resize(sampler.best(masked, std::ssize(text), text, guesses));
      ASSERT_EQ(draft.size(), std::ssize(guesses));
      for (size_t i = 0; i < guesses.size(); ++i) {
        EXPECT_EQ(draft.nodes[i].token, guesses[i].token);
        EXPECT_FLOAT_EQ(draft.nodes[i].confidence, guesses[i].confidence);
      }
      std::vector<float> distribution;
      sampler.distribution(masked, text, distribution);
      distribution.resize(39);
      EXPECT_EQ(draft.distributions.at(0), distribution);
      text.push_back((round * 11 + 3) % 40);
    }
  }
}

}  // namespace
}  // namespace verbatim
