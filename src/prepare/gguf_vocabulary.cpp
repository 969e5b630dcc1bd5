#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "prepare/converted_vocabulary.h"
#include "text/byte_level.h"
#include "text/chat_template_source.h"
#include "text/gguf_pre_tokenizers.h"
#include "text/json_fields.h"
#include "text/sentencepiece_model.h"
#include "text/step_json.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_files.h"

namespace verbatim {

namespace {

using Type = SentencePieceModel::Type;  // GGUF numbers the kinds of tokens as SentencePiece does

/// The tokens as GGUF lists them.
struct TokenLists {
  std::vector<std::string> texts;
  std::vector<int32_t> types;
  std::vector<float> scores;
};

/// Refuses an added token with rules of its own for the text around it, which GGUF cannot state.
void refuse_rules(const AddedToken& token, const std::string& where) {
  if (!token.strip_left && !token.strip_right && !token.single_word) return;
  bad_input(
      "{}: the added token {} takes spaces around it or wants to stand alone, which a GGUF file cannot "
      "say",
      where, printable(token.content));
}

/// Lists the tokens of a vocabulary and what fills it up to the rows of the model.
TokenLists list_tokens(const Tokenizer& tokenizer, int32_t rows, const std::string& where) {
  if (tokenizer.vocab_size() > rows) {
    bad_input("{}: the vocabulary has {} tokens, but the model has {}", where, tokenizer.vocab_size(), rows);
  }
  TokenLists lists;
  for (Token token = 0; token < rows; ++token) {
    const std::string text(tokenizer.vocabulary_text(token));
    const bool absent = text.empty();
    lists.texts.push_back(absent ? filling_text(token) : text);
    const Type type = absent ? Type::kUnused : tokenizer.is_control(token) ? Type::kControl : Type::kNormal;
    lists.types.push_back(static_cast<int32_t>(type));
    lists.scores.push_back(-10000.0f);
  }
  return lists;
}

void add_tokens(const Tokenizer& tokenizer, const TokenLists& lists, const char* model,
                const std::string& where, GgufMetadata& metadata) {
  metadata.add("tokenizer.ggml.model", model);
  metadata.add("tokenizer.ggml.tokens", std::span<const std::string>(lists.texts));
  metadata.add("tokenizer.ggml.token_type", std::span<const int32_t>(lists.types));
  const std::vector<Token> before = tokenizer.encode("", {.add_bos = true});
  const std::vector<Token> after = tokenizer.encode("", {.add_bos = false, .add_end = true});
  const bool ends = after.size() == 1 && after.front() == tokenizer.eos();
  if (before.size() > 1 || (!after.empty() && !ends)) {
    bad_input(
        "{}: the vocabulary puts {} tokens before a text and {} behind it, which a GGUF file cannot say",
        where, before.size(), after.size());
  }
  if (!before.empty() && before.front() != tokenizer.bos()) {
    bad_input(
        "{}: the vocabulary begins texts with token {}, but its bos_token is {}; a GGUF file has only one",
        where, before.front(), tokenizer.bos().value_or(-1));
  }
  metadata.add("tokenizer.ggml.add_bos_token", !before.empty());
  if (ends) metadata.add("tokenizer.ggml.add_eos_token", true);
}

VocabularyLoss add_pieces(const TokenizerFiles& files, const Tokenizer& tokenizer, int32_t rows,
                          GgufMetadata& metadata) {
  const std::string where = files.where(files.vocabulary);
  const SentencePieceModel model = parse_sentencepiece_model(files.at(files.vocabulary), where);
  if (!model.merges_pairs) bad_input("{}: a Unigram vocabulary cannot be converted to GGUF", where);
  if (model.maps_characters || model.removes_spaces || !model.escape_spaces) {
    bad_input("{}: a vocabulary that normalizes texts cannot be converted to GGUF", where);
  }
  TokenLists lists = list_tokens(tokenizer, rows, where);
  for (size_t i = 0; i < model.entries.size(); ++i) {
    const SentencePieceModel::Entry& entry = model.entries[i];
    lists.scores[i] = entry.score;
    const bool control = lists.types[i] == static_cast<int32_t>(Type::kControl);
    if (!control || entry.type == Type::kUnknown) lists.types[i] = static_cast<int32_t>(entry.type);
  }
  const TokenizerConfig config = tokenizer_config_of(files);
  for (const AddedToken& token : config.added) {
    refuse_rules(token, where);
    if (!token.special) lists.types[static_cast<size_t>(token.id)] = static_cast<int32_t>(Type::kUserDefined);
  }
  add_tokens(tokenizer, lists, "llama", where, metadata);
  metadata.add("tokenizer.ggml.scores", std::span<const float>(lists.scores));
  metadata.add("tokenizer.ggml.add_space_prefix", model.add_dummy_prefix);
  if (model.unknown >= 0) metadata.add("tokenizer.ggml.unknown_token_id", model.unknown);
  return {.composition = false, .later_spaces = model.add_dummy_prefix && !config.legacy.value_or(true)};
}

/// The regular expressions by which a byte-level vocabulary cuts texts; nothing for other ways.
std::optional<std::vector<std::string>> patterns_of(const Json& json, const std::string& where) {
  std::vector<std::string> patterns;
  const std::vector<const Json*> steps = steps_of(json, "pre_tokenizer", "pretokenizers", where);
  for (const Json* const step : steps) {
    const std::string type = string_field(*step, "type", where).value_or("");
    if (type == "Split") {
      const Json* const pattern = find_field(*step, "pattern");
      const auto regex = pattern == nullptr ? std::nullopt : string_field(*pattern, "Regex", where);
      const bool plain = regex && string_field(*step, "behavior", where) == "Isolated" &&
                         !bool_field(*step, "invert", where).value_or(false);
      if (!plain) return std::nullopt;
      patterns.push_back(*regex);
    } else if (type == "Digits" && bool_field(*step, "individual_digits", where).value_or(false)) {
      patterns.emplace_back(R"(\p{N})");
    } else if (type == "ByteLevel" && step == steps.back()) {
      if (bool_field(*step, "add_prefix_space", where).value_or(true)) return std::nullopt;
      if (bool_field(*step, "use_regex", where).value_or(true)) patterns.emplace_back(kGpt2Pattern);
      return patterns;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

/// The merges of a tokenizer.json as GGUF has them: two texts with a space between.
std::vector<std::string> merge_lines(const Json& model, const std::string& where) {
  std::vector<std::string> lines;
  for (const Json& merge : require_field(model, "merges", where)) {  // checked by the tokenizer
    lines.push_back(merge.is_string() ? merge.get<std::string>()
                                      : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  return lines;
}

/// Whether texts are composed before they are cut. Other normalizations are refused.
bool composes(const Json& json, const std::string& where) {
  const Json* const normalizer = find_field(json, "normalizer");
  if (normalizer == nullptr) return false;
  const std::string type = string_field(*normalizer, "type", where).value_or("");
  const Json* const inner = find_field(*normalizer, "normalizers");
  if (type == "NFC") return true;
  if (type == "Sequence" && inner != nullptr && inner->empty()) return false;
  bad_input("{}: a GGUF file cannot say that texts are normalized by {}", where, printable(type));
}

/// Refuses models of words that GGUF's "gpt2" is not.
void refuse_kind(const Tokenizer& tokenizer, const std::string& where) {
  if (tokenizer.kind() != "byte-level bpe") {
    bad_input("{}: a vocabulary of the kind '{}' in a tokenizer.json cannot be converted to GGUF", where,
              tokenizer.kind());
  }
}

VocabularyLoss add_byte_level_pieces(const TokenizerFiles& files, const Tokenizer& tokenizer, int32_t rows,
                                     GgufMetadata& metadata) {
  const std::string where = files.where(files.vocabulary);
  if (files.vocabulary != "tokenizer.json") {
    bad_input("{}: only tokenizer.model and tokenizer.json can be converted to GGUF", where);
  }
  const Json json = parse_json_object(files.at(files.vocabulary), where);
  const Json& model = require_field(json, "model", where);
  refuse_kind(tokenizer, where);
  const std::optional<std::vector<std::string>> patterns = patterns_of(json, where);
  if (!patterns) bad_input("{}: GGUF has no name for the way in which this vocabulary cuts texts", where);
  const bool ignore_merges = bool_field(model, "ignore_merges", where).value_or(false);
  const std::optional<std::string> name = gguf_pre_tokenizer_name(*patterns, ignore_merges);
  if (!name) bad_input("{}: GGUF has no name for the way in which this vocabulary cuts texts", where);
  TokenLists lists = list_tokens(tokenizer, rows, where);
  if (const Json* const added = find_field(json, "added_tokens")) {
    for (const Json& token : *added) {
      const int64_t id = require_token_id(require_field(token, "id", where), where);
      for (const char* rule : {"lstrip", "rstrip", "single_word"}) {
        if (!bool_field(token, rule, where).value_or(false)) continue;
        bad_input("{}: the added token {} has the rule {}, which a GGUF file cannot say", where, id, rule);
      }
      int32_t& type = lists.types[static_cast<size_t>(id)];
      if (type == static_cast<int32_t>(Type::kNormal)) type = static_cast<int32_t>(Type::kUserDefined);
    }
  }
  // The settings may add tokens of their own.
  for (const AddedToken& token : tokenizer_config_of(files).added) {
    // Loading leaves out what the vocabulary lists already, and the places that the settings give it.
    if (tokenizer.vocabulary_text(token.id) != token.content) continue;
    int32_t& type = lists.types[static_cast<size_t>(token.id)];
    const bool own = require_field(model, "vocab", where).contains(token.content);
    if (own || type != static_cast<int32_t>(Type::kNormal)) continue;
    refuse_rules(token, where);
    type = static_cast<int32_t>(Type::kUserDefined);
  }
  const bool composed = composes(json, where);
  add_tokens(tokenizer, lists, "gpt2", where, metadata);
  metadata.add("tokenizer.ggml.pre", *name);
  metadata.add("tokenizer.ggml.merges", std::span<const std::string>(merge_lines(model, where)));
  return {.composition = composed, .later_spaces = false};
}

}  // namespace

VocabularyLoss add_gguf_vocabulary(const TokenizerSource& source, int32_t rows, GgufMetadata& metadata) {
  const auto tokenizer = load_tokenizer(source);
  const TokenizerFiles files = read_tokenizer_files(source);
  const ChatTemplateSource chat = read_chat_template(source);
  if (chat.text) metadata.add("tokenizer.chat_template", *chat.text);
  if (chat.text_with_tools) metadata.add("tokenizer.chat_template.tool_use", *chat.text_with_tools);
  if (source.kind == TokenizerSource::Kind::kSentencePieceModel) {
    return add_pieces(files, *tokenizer, rows, metadata);
  }
  return add_byte_level_pieces(files, *tokenizer, rows, metadata);
}

}  // namespace verbatim
