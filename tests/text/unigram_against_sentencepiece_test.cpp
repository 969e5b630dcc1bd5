// A Unigram vocabulary is trained with SentencePiece, and what its library makes of texts is compared with
// what the same vocabulary gives as a tokenizer.json.

#include <gtest/gtest.h>

#ifdef VERBATIM_SENTENCEPIECE_TRAINER

#include <sentencepiece_trainer.h>

#include <bit>

#include "character_table_support.h"
#include "text/protobuf_reader.h"
#include "text/sentencepiece_model.h"
#include "text/sentencepiece_tokenizer.h"
#include "tokenizer_json_support.h"

namespace verbatim {
namespace {

using test::Json;

/// Words of made-up languages in several scripts, some of them common.
class Sentences final : public sentencepiece::SentenceIterator {
 public:
  bool done() const override { return index_ == kCount; }
  void Next() override {
    ++index_;
    make();
  }
  const std::string& value() const override { return text_; }
  sentencepiece::util::Status status() const override { return {}; }

  Sentences() { make(); }

 private:
  void make() {
    static const char* const kSyllables[] = {"ka",   "to",   "mi",  "re", "sun", "der", "ing",
                                             "über", "né",   "ção", "по", "ми",  "ра",  "日",
                                             "本",   "ます", "한",  "ﬁ",  "12",  "'s"};
    text_.clear();
    for (int word = 0; word < 12; ++word) {
      const size_t base = random_() % 18;
      for (size_t i = 0; i <= random_() % 4; ++i) text_ += kSyllables[(base + random_() % 3) % 20];
      text_ += random_() % 6 == 0 ? ", " : " ";
    }
  }

  static constexpr int kCount = 3000;
  std::mt19937 random_{11};
  std::string text_;
  int index_ = 0;
};

std::string train(const std::string& options) {
  Sentences sentences;
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      "--model_type=unigram --vocab_size=400 --minloglevel=2 --num_threads=1 --character_coverage=0.9995 " +
          options,
      &sentences, &model);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return model;
}

/// SentencePiece's table of characters: field 2 of the normalizer, which is field 3.
std::string character_table_of(const std::string& model) {
  const std::string where = "model";
  ProtobufReader fields(model, where);
  for (ProtobufField field; fields.next(field);) {
    if (field.number != 3) continue;
    ProtobufReader inner(field.bytes, where);
    for (ProtobufField each; inner.next(each);) {
      if (each.number == 2) return std::string(each.bytes);
    }
  }
  return {};
}

/// The vocabulary as a tokenizer.json, as it is converted for Hugging Face's library.
Json as_tokenizer_json(const std::string& bytes) {
  const SentencePieceModel model = parse_sentencepiece_model(bytes, "model");
  Json json = Json::parse(R"({"normalizer": {"type": "Sequence", "normalizers": [
      {"type": "Precompiled"}, {"type": "Strip"},
      {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"},
      {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}]},
    "model": {"type": "Unigram"}})");
  json["normalizer"]["normalizers"][0]["precompiled_charsmap"] = test::base64_text(character_table_of(bytes));
  Json& words = json["model"];
  words["vocab"] = Json::array();
  words["byte_fallback"] = false;
  for (size_t i = 0; i < model.entries.size(); ++i) {
    const SentencePieceModel::Entry& entry = model.entries[i];
    words["vocab"].push_back({entry.text, entry.score});
    if (entry.type == SentencePieceModel::Type::kByte) words["byte_fallback"] = true;
    const bool unknown = entry.type == SentencePieceModel::Type::kUnknown;
    if (unknown) words["unk_id"] = i;
    if (!unknown && entry.type != SentencePieceModel::Type::kControl) continue;
    json["added_tokens"].push_back({{"id", i}, {"content", entry.text}, {"special", true}});
  }
  return json;
}

/// A line without what the two define in different ways: several characters that a user sees as one, which
/// the library looks up from the left and tokenizer.json as a whole.
std::string plain_line(std::mt19937& random) {
  static const std::array<std::array<uint32_t, 2>, 9> kRanges = {{{'a', 'z'},
                                                                  {' ', '~'},
                                                                  {0xA0, 0xAC},
                                                                  {0xC0, 0x17F},
                                                                  {0x410, 0x44F},
                                                                  {0x3041, 0x3096},
                                                                  {0x4E00, 0x9FA5},
                                                                  {0xFF01, 0xFF5E},
                                                                  {0x2460, 0x24FF}}};
  std::string line;
  for (uint32_t i = 0; i < 1 + random() % 50; ++i) {
    const auto& range = kRanges[random() % kRanges.size()];
    if (random() % 5 == 0) line += ' ';
    test::append_utf8(range[0] + static_cast<uint32_t>(random() % (range[1] - range[0] + 1)), line);
  }
  return line;
}

void expect_the_same(const std::string& model) {
  ASSERT_FALSE(model.empty());
  const auto theirs = parse_sentencepiece(model, "model", {});
  const auto ours = test::load_json(as_tokenizer_json(model));
  ASSERT_EQ(ours->vocab_size(), theirs->vocab_size());
  const SentencePieceModel entries = parse_sentencepiece_model(model, "model");
  const auto score = [&](const std::vector<Token>& tokens) {
    double sum = 0.0;
    for (const Token token : tokens) sum += entries.entries[static_cast<size_t>(token)].score;
    return sum;
  };
  int ties = 0;
  std::mt19937 random(5);
  Sentences sentences;
  for (int round = 0; round < 4000; ++round) {
    std::string text;
    if (round % 2 == 0) {
      text = sentences.value();
      sentences.Next();
      if (sentences.done()) sentences = Sentences();
    } else {
      text = plain_line(random);
    }
    const auto tokens = ours->encode(text, test::kPlainText);
    const auto expected = theirs->encode(text, test::kPlainText);
    // The library adds scores in 32 bits, so of ways that are equally good it may take another.
    if (tokens != expected) {
      ++ties;
      ASSERT_NEAR(score(tokens), score(expected), 1e-3) << text;
    }
    ASSERT_EQ(ours->decode(tokens), theirs->decode(expected)) << text;
  }
  EXPECT_LT(ties, 400);
}

TEST(UnigramAgainstSentencePiece, TheSameTokensAndTexts) {
  expect_the_same(train(""));
}

TEST(UnigramAgainstSentencePiece, TheSameTokensAndTextsWithBytes) {
  expect_the_same(train("--byte_fallback=true --vocab_size=700"));
}

}  // namespace
}  // namespace verbatim

#endif
