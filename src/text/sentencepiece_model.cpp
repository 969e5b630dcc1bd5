#include "text/sentencepiece_model.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/utf8.h"
#include "text/protobuf_reader.h"

namespace verbatim {

namespace {

using Type = SentencePieceModel::Type;

// Field numbers of the format's messages.
enum ModelField : uint32_t { kPieces = 1, kTrainer = 2, kNormalizer = 3, kDenormalizer = 5 };
enum PieceField : uint32_t { kText = 1, kScore = 2, kType = 3 };
enum TrainerField : uint32_t { kModelType = 3, kUnknownId = 40, kBosId = 41, kEosId = 42 };
enum NormalizerField : uint32_t {
  kCharacterMap = 2,
  kAddDummyPrefix = 3,
  kRemoveSpaces = 4,
  kEscapeSpaces = 5
};
constexpr uint64_t kPairMerges = 2;  // the model type "BPE"

SentencePieceModel::Entry parse_entry(std::string_view bytes, size_t id, const std::string& where) {
  SentencePieceModel::Entry entry;
  ProtobufReader reader(bytes, where);
  for (ProtobufField field; reader.next(field);) {
    if (field.number == kText) entry.text = field.bytes;
    if (field.number == kScore) {
      entry.score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
      if (!std::isfinite(entry.score)) bad_input("{}: the score of piece {} is not a number", where, id);
    }
    if (field.number == kType) {
      if (field.value < 1 || field.value > 6)
        bad_input("{}: piece {} is of unknown type {}", where, id, field.value);
      entry.type = static_cast<Type>(field.value);
    }
  }
  if (entry.text.empty()) bad_input("{}: piece {} is empty", where, id);
  if (entry.text.find('\0') != std::string::npos || find_invalid_utf8(entry.text) != std::string_view::npos) {
    bad_input("{}: piece {} is not valid UTF-8 text", where, id);
  }
  return entry;
}

uint32_t read_word(std::string_view bytes, size_t offset) {
  uint32_t word;
  std::memcpy(&word, bytes.data() + offset, sizeof(word));
  return word;
}

// The map of characters is a double-array trie followed by the texts that its values point into. The library
// follows both without looking, so every step and every value must stay inside.
void check_character_map(std::string_view map, const std::string& where) {
  if (map.empty()) return;
  const auto damaged = [&](bool is) {
    if (is) bad_input("{}: the normalizer's table of characters is damaged", where);
  };
  damaged(map.size() < 8);
  const size_t trie_bytes = read_word(map, 0);
  damaged(trie_bytes > map.size() - 4 || trie_bytes % 1024 != 0 || trie_bytes == 0);
  const std::string_view trie = map.substr(4, trie_bytes);
  const std::string_view texts = map.substr(4 + trie_bytes);
  damaged(texts.empty() || texts.back() != '\0');
  const size_t units = trie_bytes / 4;
  for (size_t i = 0; i < units; ++i) {
    const uint32_t unit = read_word(trie, 4 * i);
    if ((unit & 0x80000000u) != 0) {
      damaged((unit & 0x7FFFFFFFu) >= texts.size());
    } else {
      const uint32_t offset = (unit >> 10) << ((unit & 0x200u) >> 6);
      damaged(((i ^ offset) | 0xFFu) >= units);
    }
  }
}

void parse_normalizer_spec(std::string_view bytes, const std::string& where, SentencePieceModel* model) {
  ProtobufReader reader(bytes, where);
  for (ProtobufField field; reader.next(field);) {
    if (field.number == kCharacterMap) check_character_map(field.bytes, where);
    if (model != nullptr && field.number == kCharacterMap) model->maps_characters = !field.bytes.empty();
    if (model != nullptr && field.number == kRemoveSpaces) model->removes_spaces = field.value != 0;
    if (model != nullptr && field.number == kAddDummyPrefix) model->add_dummy_prefix = field.value != 0;
    if (model != nullptr && field.number == kEscapeSpaces) model->escape_spaces = field.value != 0;
  }
}

void parse_trainer(std::string_view bytes, const std::string& where, SentencePieceModel& model) {
  ProtobufReader reader(bytes, where);
  for (ProtobufField field; reader.next(field);) {
    if (field.number == kModelType) model.merges_pairs = field.value == kPairMerges;
    if (field.number == kUnknownId) model.unknown = static_cast<int32_t>(field.value);
    if (field.number == kBosId) model.bos = static_cast<int32_t>(field.value);
    if (field.number == kEosId) model.eos = static_cast<int32_t>(field.value);
  }
}

}  // namespace

SentencePieceModel parse_sentencepiece_model(std::string_view bytes, const std::string& where) {
  SentencePieceModel model;
  ProtobufReader reader(bytes, where);
  for (ProtobufField field; reader.next(field);) {
    if (field.number <= kDenormalizer && field.wire_type != 2) {
      bad_input("{}: the file is damaged or is not a SentencePiece model", where);
    }
    if (field.number == kPieces)
      model.entries.push_back(parse_entry(field.bytes, model.entries.size(), where));
    if (field.number == kTrainer) parse_trainer(field.bytes, where, model);
    if (field.number == kNormalizer) parse_normalizer_spec(field.bytes, where, &model);
    if (field.number == kDenormalizer) parse_normalizer_spec(field.bytes, where, nullptr);
  }
  if (model.entries.empty())
    bad_input("{}: the file holds no pieces, so it is not a SentencePiece model", where);
  return model;
}

std::string without_dummy_prefix(std::string_view bytes) {
  // A message that occurs again is merged into the earlier one, and its later values count.
  constexpr char kOverride[] = {kNormalizer << 3 | 2, 2, kAddDummyPrefix << 3, 0};
  return std::string(bytes) + std::string(kOverride, sizeof(kOverride));
}

}  // namespace verbatim
