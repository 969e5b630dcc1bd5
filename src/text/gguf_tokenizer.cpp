#include "text/gguf_tokenizer.h"

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "text/bpe_encoder.h"
#include "text/bpe_vocabulary.h"
#include "text/byte_level.h"
#include "text/gguf_pre_tokenizers.h"

namespace verbatim {

namespace {

// The numbers of tokenizer.ggml.token_type.
enum GgufTokenType : int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

PieceKind kind_of(int64_t type) {
  if (type == kControl || type == kUnknown) return PieceKind::kControl;
  return type == kByte ? PieceKind::kByte : PieceKind::kNormal;
}

std::string bytes_of(const std::string& text, int64_t type, bool byte_level) {
  if (kind_of(type) == PieceKind::kControl) return {};
  if (type == kUserDefined) return byte_level ? text : replace_all(text, kSpaceMark, " ");
  if (byte_level) return byte_level_bytes(text).value_or(text);
  if (type == kByte) {
    if (const auto byte = byte_token_value(text)) return std::string(1, static_cast<char>(*byte));
  }
  return replace_all(text, kSpaceMark, " ");
}

std::optional<Token> token_id(const GgufFile& gguf, const std::string& key, const Vocabulary& vocabulary,
                              const std::string& where) {
  const auto id = gguf_integer(gguf, key);
  if (!id) return std::nullopt;
  if (!vocabulary.has(*id)) bad_input("{}: {} is {}, which is not in the vocabulary", where, key, *id);
  return static_cast<Token>(*id);
}

// Control tokens only count where the caller allows them; user-defined ones always do.
void add_to_look_for(const std::string& text, Token id, int64_t type, const std::string& where,
                     AddedTokens& added) {
  if (type != kUserDefined && kind_of(type) != PieceKind::kControl) return;
  AddedToken token;
  token.content = text;
  token.id = id;
  token.special = type != kUserDefined;
  added.add(std::move(token), where);
}

Vocabulary read_vocabulary(const GgufFile& gguf, bool byte_level, const std::string& where,
                           AddedTokens& added) {
  const auto tokens = gguf_array(gguf, "tokenizer.ggml.tokens");
  if (tokens == nullptr || tokens->strings.empty())
    bad_input("{}: tokenizer.ggml.tokens is missing or empty", where);
  const auto types = gguf_array(gguf, "tokenizer.ggml.token_type");
  if (types != nullptr && types->integers.size() != tokens->strings.size()) {
    bad_input("{}: tokenizer.ggml.token_type has {} entries for {} tokens", where, types->integers.size(),
              tokens->strings.size());
  }
  Vocabulary vocabulary;
  for (size_t i = 0; i < tokens->strings.size(); ++i) {
    const std::string& text = tokens->strings[i];
    const auto id = static_cast<Token>(i);
    if (find_invalid_utf8(text) != std::string_view::npos)
      bad_input("{}: token {} is not valid UTF-8", where, i);
    const int64_t type = types != nullptr ? types->integers[i] : int64_t{kNormal};
    vocabulary.set(id, text, kind_of(type), bytes_of(text, type, byte_level));
    add_to_look_for(text, id, type, where, added);
  }
  vocabulary.bos = token_id(gguf, "tokenizer.ggml.bos_token_id", vocabulary, where);
  vocabulary.eos = token_id(gguf, "tokenizer.ggml.eos_token_id", vocabulary, where);
  vocabulary.unknown = token_id(gguf, "tokenizer.ggml.unknown_token_id", vocabulary, where);
  return vocabulary;
}

std::vector<float> read_scores(const GgufFile& gguf, size_t count, const std::string& where) {
  const auto scores = gguf_array(gguf, "tokenizer.ggml.scores");
  if (scores == nullptr || scores->floats.size() != count) {
    bad_input("{}: tokenizer.ggml.scores must hold a number for each of the {} tokens", where, count);
  }
  return {scores->floats.begin(), scores->floats.end()};
}

void make_sentencepiece(const GgufFile& gguf, const std::string& where, Vocabulary& vocabulary,
                        BpeModel& model) {
  model.byte_fallback = true;
  model.merges = merges_from_scores(vocabulary, read_scores(gguf, vocabulary.pieces.size(), where), where);
  const bool prefix = gguf_bool(gguf, "tokenizer.ggml.add_space_prefix").value_or(true);
  using Kind = NormalizerStep::Kind;
  if (prefix) model.steps.normalizer.push_back({Kind::kPrepend, {}, " ", nullptr});
  model.steps.normalizer.push_back({Kind::kReplace, {" ", {}}, std::string(kSpaceMark), nullptr});
  vocabulary.drop_first_space = prefix;
}

void make_byte_level(const GgufFile& gguf, const std::string& where, const Vocabulary& vocabulary,
                     BpeModel& model) {
  model.byte_level = true;
  GgufPreTokenizer words =
      gguf_pre_tokenizer(gguf_string(gguf, "tokenizer.ggml.pre").value_or("default"), where);
  model.steps.pre_tokenizer = std::move(words.steps);
  model.ignore_merges = words.ignore_merges;
  const auto merges = gguf_array(gguf, "tokenizer.ggml.merges");
  if (merges == nullptr) bad_input("{}: tokenizer.ggml.merges is missing", where);
  model.merges.reserve(merges->strings.size());
  int32_t rank = 0;
  for (const std::string& merge : merges->strings) add_merge(merge, rank++, where, vocabulary, model.merges);
}

}  // namespace

std::shared_ptr<const Tokenizer> make_gguf_tokenizer(const GgufFile& gguf, const std::string& where) {
  const auto name = gguf_string(gguf, "tokenizer.ggml.model");
  if (!name) bad_input("{}: tokenizer.ggml.model is missing, so the file holds no vocabulary", where);
  const bool byte_level = *name == "gpt2";
  if (!byte_level && *name != "llama") {
    bad_input("{}: tokenizer.ggml.model is '{}', which is not supported (supported: llama, gpt2)", where,
              printable(*name));
  }
  AddedTokens added;
  Vocabulary vocabulary = read_vocabulary(gguf, byte_level, where, added);
  vocabulary.add_bos = gguf_bool(gguf, "tokenizer.ggml.add_bos_token").value_or(!byte_level);
  if (gguf_bool(gguf, "tokenizer.ggml.add_eos_token").value_or(false) && vocabulary.eos) {
    vocabulary.after = {*vocabulary.eos};
  }
  BpeModel model;
  if (byte_level) {
    make_byte_level(gguf, where, vocabulary, model);
  } else {
    make_sentencepiece(gguf, where, vocabulary, model);
  }
  auto shared = std::make_shared<const Vocabulary>(std::move(vocabulary));
  model.vocabulary = shared;
  return make_tokenizer(std::move(shared), std::move(added), make_bpe_encoder(std::move(model)),
                        byte_level ? "byte-level bpe" : "sentencepiece");
}

}  // namespace verbatim
