#include "verbatim/model_vocabulary.h"

#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/bad_input.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "verbatim/model.h"
#include "verbatim/pack.h"

namespace verbatim {
namespace model_vocabulary_test {
namespace {

using test::expect_bad_input;

const Model& model() {
  static const Model loaded = Model::load(test::draft_model(), {.threads = 1});
  return loaded;
}

const ModelVocabulary& vocabulary() {
  static const ModelVocabulary loaded = ModelVocabulary::load(test::draft_model());
  return loaded;
}

const char* const kText = "  def f(x):\n\treturn \"caf\u00e9 \u4f60\u597d\"  # </s> <s>\n\n";

TEST(ModelVocabulary, EncodesAsTheModelDoes) {
  EXPECT_EQ(vocabulary().vocab_size(), model().vocab_size());
  for (const char* text : {kText, "", " ", "import os"}) {
    EXPECT_EQ(vocabulary().encode(text), model().encode(text)) << text;
    EXPECT_EQ(vocabulary().encode(text, {.add_bos = false}), model().encode(text, false)) << text;
  }
}

TEST(ModelVocabulary, DecodesToTheTextItEncoded) {
  for (const char* text : {kText, "", " ", "import os"}) {
    const std::vector<int32_t> tokens = vocabulary().encode(text, {.special = false});
    EXPECT_EQ(vocabulary().decode(tokens), text);
    EXPECT_EQ(vocabulary().decode(tokens), model().decode(tokens));
  }
}

TEST(ModelVocabulary, TakesSpecialTokensForPlainTextOnRequest) {
  const int32_t end = model().eos_tokens().front();
  const std::string spelling = vocabulary().piece(end);
  EXPECT_EQ(vocabulary().encode(spelling, {.add_bos = false}), std::vector<int32_t>{end});
  EXPECT_GT(vocabulary().encode(spelling, {.add_bos = false, .special = false}).size(), 1u);
  EXPECT_TRUE(vocabulary().is_control(end));
}

TEST(ModelVocabulary, SpellsControlTokensOutOnRequest) {
  const std::vector<int32_t> tokens = vocabulary().encode("a</s>b", {.add_bos = true});
  EXPECT_EQ(vocabulary().decode(tokens), "ab");
  EXPECT_EQ(vocabulary().decode(tokens, true), "<s>a</s>b");
}

TEST(ModelVocabulary, TellsWhatEachTokenAdds) {
  const std::vector<int32_t> tokens = vocabulary().encode(kText, {.special = false});
  std::string text;
  bool first = true;
  for (const int32_t token : tokens) {
    EXPECT_EQ(vocabulary().piece(token), model().piece(token));
    EXPECT_EQ(vocabulary().token_text(token), model().token_text(token));
    text += vocabulary().token_text(token, first);
    first = first && vocabulary().is_control(token);
  }
  EXPECT_EQ(text, kText);
}

TEST(ModelVocabulary, OpensEveryFormOfModel) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(pack_model(test::draft_model(), folder.path() / "model.vbt", {.formats = {"full"}}));
  const ModelVocabulary packed = ModelVocabulary::load(folder.path() / "model.vbt");
  EXPECT_EQ(packed.encode(kText), vocabulary().encode(kText));
  test::TinyModelOptions options;
  options.byte_vocabulary = true;
  options.vocab_size = 260;
  test::write_tiny_gguf(folder.path() / "model.gguf", options);
  const ModelVocabulary bytes = ModelVocabulary::load(folder.path() / "model.gguf");
  EXPECT_EQ(bytes.vocab_size(), 260);
  EXPECT_EQ(bytes.decode(bytes.encode(kText, {.special = false})), kText);
}

TEST(ModelVocabulary, RefusesWhatHasNone) {
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model");
  expect_bad_input([&] { ModelVocabulary::load(folder.path() / "model"); },
                   {"model has no tokenizer.model, tokenizer.json or vocab.json"});
  expect_bad_input([&] { ModelVocabulary::load(folder.path() / "absent"); }, {"absent"});
  // The default model's tokenizer has thousands of tokens, the tiny model 256.
  for (const char* name : {"tokenizer.model", "tokenizer_config.json"}) {
    std::filesystem::copy(test::default_model() / name, folder.path() / "model" / name);
  }
  expect_bad_input([&] { ModelVocabulary::load(folder.path() / "model"); }, {"do not belong together"});
}

TEST(ModelVocabulary, RefusesTokensAndTextsThatAreNone) {
  const int32_t size = vocabulary().vocab_size();
  for (const int32_t token : {-1, size, 2147483647}) {
    expect_bad_input(
        [&] {
          vocabulary().decode({1, token});
        },
        {std::to_string(token), "outside the vocabulary"});
    expect_bad_input([&] { vocabulary().piece(token); }, {std::to_string(token)});
    expect_bad_input([&] { vocabulary().token_text(token); }, {std::to_string(token)});
  }
  expect_bad_input([] { vocabulary().encode("a\xff"); }, {"UTF-8 at byte 1"});
}

TEST(Model, KnowsWhetherItHasAVocabulary) {
  EXPECT_TRUE(model().has_vocabulary());
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model");
  EXPECT_FALSE(Model::load(folder.path() / "model", {.threads = 1}).has_vocabulary());
}

}  // namespace
}  // namespace model_vocabulary_test
}  // namespace verbatim
