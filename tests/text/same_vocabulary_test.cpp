#include "text/same_vocabulary.h"

#include "support/other_vocabulary.h"
#include "support/synthetic_model.h"
#include "support/trained_gguf.h"
#include "tokenizer_support.h"

namespace verbatim {
namespace {

std::shared_ptr<const Tokenizer> tokenizer_at(const std::filesystem::path& path) {
  return load_tokenizer(open_checkpoint(path).tokenizer);
}

/// A GGUF vocabulary of the letters a to d and more.
std::shared_ptr<const Tokenizer> letters(const test::TemporaryFolder& folder, const std::string& name,
                                         std::vector<std::string> more) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "a", "b", "c", "d"};
  tokens.insert(tokens.end(), more.begin(), more.end());
  const auto array = [](uint32_t type, const auto& values) {
    std::string bytes =
        test::bytes_of<uint32_t>(9) + test::bytes_of(type) + test::bytes_of<uint64_t>(values.size());
    for (const auto value : values) bytes += test::bytes_of(value);
    return bytes;
  };
  std::vector<int32_t> types(tokens.size(), 1);
  types[0] = 2;
  types[1] = types[2] = 3;
  const std::vector<float> scores(tokens.size(), -1.0f);
  test::GgufBuilder builder;
  builder.text("tokenizer.ggml.model", "llama")
      .texts("tokenizer.ggml.tokens", tokens)
      .raw("tokenizer.ggml.scores", array(6, scores))
      .raw("tokenizer.ggml.token_type", array(5, types));
  return load_tokenizer({TokenizerSource::Kind::kGguf, folder.write(name, builder.build())});
}

TEST(PublicSameVocabulary, HoldsForTwoFilesOfOneVocabulary) {
  NEEDS_PUBLIC_DATA();
  const auto llama2 = test::public_data() / "tokenizers" / "llama-2";
  const auto model = load_tokenizer({TokenizerSource::Kind::kSentencePieceModel, llama2 / "tokenizer.model"});
  const auto json = load_tokenizer({TokenizerSource::Kind::kTokenizerJson, llama2 / "tokenizer.json"});
  EXPECT_TRUE(same_vocabulary(*model, *model));
  EXPECT_TRUE(same_vocabulary(*model, *json));
  EXPECT_TRUE(same_vocabulary(*json, *model));
  const auto gguf =
      load_tokenizer({TokenizerSource::Kind::kGguf,
                      test::public_data() / "tokenizers" / "gguf-vocabs" / "ggml-vocab-llama-spm.gguf"});
  EXPECT_TRUE(same_vocabulary(*model, *gguf));
}

TEST(PublicSameVocabulary, DoesNotHoldForOthersOfAnySize) {
  NEEDS_PUBLIC_DATA();
  const auto folder = test::public_data();
  const auto small = tokenizer_at(test::default_model());
  const auto story = tokenizer_at(folder / "models" / "stories260K" / "stories260K-f32.gguf");
  const auto other_story = tokenizer_at(folder / "models" / "llama2xs" / "llama2xs-f32.gguf");
  const auto llama2 = load_tokenizer(
      {TokenizerSource::Kind::kSentencePieceModel, folder / "tokenizers" / "llama-2" / "tokenizer.model"});
  const auto gpt2 = load_tokenizer(
      {TokenizerSource::Kind::kGguf, folder / "tokenizers" / "gguf-vocabs" / "ggml-vocab-gpt-2.gguf"});
  EXPECT_TRUE(same_vocabulary(*story, *other_story));
  const std::vector<const Tokenizer*> all = {small.get(), story.get(), llama2.get(), gpt2.get()};
  for (const Tokenizer* a : all) {
    for (const Tokenizer* b : all) EXPECT_EQ(same_vocabulary(*a, *b), a == b);
  }
}

TEST(SameVocabulary, HoldsForAGgufFileMadeOfATokenizerModel) {
  const auto model = tokenizer_at(test::draft_model());
  const auto gguf = tokenizer_at(test::draft_gguf());
  EXPECT_TRUE(same_vocabulary(*model, *gguf));
  EXPECT_TRUE(same_vocabulary(*gguf, *model));
  EXPECT_EQ(same_control(*model, *model->eos(), *gguf), gguf->eos());
}

TEST(SameVocabulary, DoesNotHoldForTheSameTokensInAnotherOrder) {
  const test::TemporaryFolder folder;
  const auto model = test::default_model();
  test::write_with_vocabulary(model, test::shuffled_vocabulary(model, 1 << 20, 1), folder.path() / "other");
  const auto original = tokenizer_at(model);
  const auto shuffled = tokenizer_at(folder.path() / "other");
  EXPECT_EQ(original->vocab_size(), shuffled->vocab_size());
  EXPECT_FALSE(same_vocabulary(*original, *shuffled));
}

// Byte vocabularies begin like larger ones, but a text of these has tokens that they lack.
TEST(SameVocabulary, MayEndInPaddingButNotInTokensOfText) {
  const test::TemporaryFolder folder;
  const auto plain = letters(folder, "plain.gguf", {});
  const auto padded = letters(folder, "padded.gguf", {"[PAD7]", "[PAD8]"});
  const auto longer = letters(folder, "longer.gguf", {"ab"});
  EXPECT_TRUE(same_vocabulary(*plain, *padded));
  EXPECT_TRUE(same_vocabulary(*padded, *plain));
  EXPECT_FALSE(same_vocabulary(*plain, *longer));
  EXPECT_FALSE(same_vocabulary(*longer, *plain));
}

TEST(PublicSameControl, FindsTheEndWhateverItIsCalled) {
  NEEDS_PUBLIC_DATA();
  const auto small = tokenizer_at(test::default_model());
  const auto gpt2 =
      load_tokenizer({TokenizerSource::Kind::kGguf,
                      test::public_data() / "tokenizers" / "gguf-vocabs" / "ggml-vocab-gpt-2.gguf"});
  ASSERT_TRUE(small->eos() && gpt2->eos());
  EXPECT_EQ(same_control(*small, *small->eos(), *gpt2), gpt2->eos());
  EXPECT_EQ(same_control(*gpt2, *gpt2->eos(), *small), small->eos());
  EXPECT_EQ(same_control(*small, *small->find("<unk>"), *gpt2), std::nullopt);
}

}  // namespace
}  // namespace verbatim
