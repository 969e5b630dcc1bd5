#include "text/sentencepiece_model.h"

#include <gtest/gtest.h>

#include "text/sentencepiece_tokenizer.h"
#include "tokenizer_support.h"

namespace verbatim {
namespace {

std::string message_field(int number, const std::string& contents) {
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  size_t size = contents.size();
  for (; size >= 0x80; size >>= 7) bytes += static_cast<char>(0x80 | (size & 0x7F));
  return bytes + static_cast<char>(size) + contents;
}

std::string piece(const std::string& text, int type = 1) {
  return message_field(1,
                       message_field(1, text) + std::string("\x15\0\0\0\0\x18", 6) + static_cast<char>(type));
}

std::string little_model() {
  return piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3) + piece("a") + piece("b") + piece("\u2581");
}

std::string with_character_map(const std::string& map) {
  return little_model() + message_field(2, std::string("\x18\x02", 2)) +
         message_field(3, message_field(2, map));
}

void load(const std::string& bytes) {
  const auto tokenizer = parse_sentencepiece(bytes, "tokenizer.model", {});
  tokenizer->decode(tokenizer->encode("a b\xE2\x84\xA2 é", {}));
}

TEST(SentencePieceModel, ALittleModelLoads) {
  const auto model = parse_sentencepiece_model(little_model(), "tokenizer.model");
  EXPECT_EQ(model.entries.size(), 6u);
  EXPECT_TRUE(model.add_dummy_prefix);
  EXPECT_NO_THROW(load(little_model() + message_field(2, std::string("\x18\x02", 2))));
}

TEST(SentencePieceModel, DamagedFilesAreErrorsThatNameTheFile) {
  const std::string good = little_model();
  for (const std::string& bytes :
       {std::string("not a model"), std::string("\x0a\xff\xff\xff\xff\x0f"), std::string(30, '\xff'),
        std::string(1, '\0'), std::string("{\"version\": 1}"), good + '\x0a', good + piece(""),
        good + piece("\xFF\xFE"), good + piece("bad type", 9), good + piece(std::string("nul\0", 4)),
        message_field(2, ""), piece("a") + piece("b"), piece("<unk>", 2) + piece("a") + piece("a"),
        piece("<unk>", 2) + piece("<unk>", 2)}) {
    const auto message = test::bad_input_message([&] { load(bytes); });
    EXPECT_EQ(message.rfind("tokenizer.model: ", 0), 0u) << message;
  }
}

TEST(SentencePieceModel, ADamagedCharacterMapNeverReachesTheLibrary) {
  const std::string trie_size("\x00\x04\x00\x00", 4);  // 1024 bytes
  std::string outside(1024, '\0');
  outside[1] = '\xFF';
  std::string value(1024, '\0');
  value[7] = '\x80';
  value[4] = '\x10';
  for (const std::string& map :
       {std::string("abc"), std::string("\xff\xff\xff\xff....", 8), trie_size + "short",
        trie_size + outside + std::string("a\0", 2), trie_size + value + std::string("a\0", 2),
        trie_size + std::string(1024, '\0') + "no end"}) {
    const auto message = test::bad_input_message([&] { load(with_character_map(map)); });
    EXPECT_NE(message.find("table of characters"), std::string::npos) << message;
  }
}

TEST(SentencePieceModel, CuttingOrChangingARealModelNeverCrashes) {
  const auto path = test::default_model() / "tokenizer.model";
  const std::string good = test::read_file(path);
  std::mt19937 random(3);
  const auto attempt = [](const std::string& bytes) {
    try {
      load(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
    }
  };
  for (int i = 0; i < 60; ++i) attempt(good.substr(0, random() % good.size()));
  for (int i = 0; i < 120; ++i) {
    std::string bytes = good;
    const size_t tail = i % 2 == 0 ? bytes.size() : 1000;  // the settings lie at the end
    for (int change = 0; change < 3; ++change)
      bytes[bytes.size() - 1 - random() % tail] = static_cast<char>(random());
    attempt(bytes);
  }
}

}  // namespace
}  // namespace verbatim
