#include "text/tokenizer_json.h"

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "text/added_token_json.h"
#include "text/bpe_encoder.h"
#include "text/bpe_vocabulary.h"
#include "text/byte_level.h"
#include "text/tokenizer_json_steps.h"

namespace verbatim {

namespace {

void require_bpe(const Json& model, const std::string& where) {
  // Files from before the model was named hold BPE exactly when they have merges.
  const auto type = string_field(model, "type", where);
  const bool is_bpe = type ? *type == "BPE" : find_field(model, "merges") != nullptr;
  if (!is_bpe) {
    bad_input(
        "{}: the tokenizer model '{}' is not supported (supported: BPE; for a SentencePiece vocabulary put "
        "its "
        "tokenizer.model beside it and remove this file)",
        where, printable(type.value_or("without a type")));
  }
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!string_field(model, name, where).value_or("").empty()) {
      bad_input("{}: a BPE model with a '{}' is not supported", where, name);
    }
  }
}

void read_vocabulary(const Json& vocab, const PieceDecoder& decoder, const std::string& where,
                     Vocabulary& vocabulary) {
  if (!vocab.is_object()) bad_input("{}: the vocabulary must be an object of texts and ids", where);
  for (const auto& item : vocab.items()) {
    const int64_t id = require_token_id(item.value(), where);
    require_plausible_id(id, vocab.size(), where);
    const bool is_byte = decoder.byte_fallback && byte_token_value(item.key());
    vocabulary.set(static_cast<Token>(id), item.key(), is_byte ? PieceKind::kByte : PieceKind::kNormal,
                   decoder.decode(item.key()));
  }
}

// A merge is a pair of texts, or one string with a space between them.
void read_merges(const Json& model, const std::string& where, const Vocabulary& vocabulary,
                 MergeTable& merges) {
  const Json& list = require_field(model, "merges", where);
  if (!list.is_array()) bad_input("{}: 'merges' must be a list", where);
  merges.reserve(list.size());
  int32_t rank = 0;
  for (const Json& merge : list) {
    if (merge.is_string()) {
      add_merge(merge.get_ref<const std::string&>(), rank, where, vocabulary, merges);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      add_merge(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>(), rank, where,
                vocabulary, merges);
    } else {
      bad_input("{}: merge {} is neither a string nor a pair of strings", where, rank);
    }
    ++rank;
  }
}

void read_added_tokens(const Json& tokenizer, const std::string& where, Vocabulary& vocabulary,
                       BpeModel& model, AddedTokens& added) {
  const Json* list = find_field(tokenizer, "added_tokens");
  if (list == nullptr) return;
  if (!list->is_array()) bad_input("{}: 'added_tokens' must be a list", where);
  std::vector<AddedToken> tokens;
  for (const Json& item : *list) {
    tokens.push_back(
        parse_added_token(item, require_token_id(require_field(item, "id", where), where), where));
  }
  std::stable_sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  for (AddedToken& token : tokens) {
    place_added_token(token, where, vocabulary);
    // A special token is found where it is written, whatever normalization would make of it: a normalizer
    // that puts a space first would otherwise hide it in the middle of a text.
    if (token.special || !token.normalized) {
      added.add(std::move(token));
    } else {
      token.content = normalize(model.normalizer, token.content);
      model.normalized_added.add(std::move(token));
    }
  }
}

// The settings may repeat the file's own tokens, whose description in the file counts.
TokenizerConfig without_known_tokens(TokenizerConfig config, const Vocabulary& vocabulary) {
  const auto known = [&](const AddedToken& token) { return vocabulary.find(token.content).has_value(); };
  config.added.erase(std::remove_if(config.added.begin(), config.added.end(), known), config.added.end());
  return config;
}

std::shared_ptr<const Tokenizer> finish(const TokenizerJsonOptions& options, Vocabulary vocabulary,
                                        AddedTokens added, BpeModel model) {
  apply_tokenizer_config(without_known_tokens(options.config, vocabulary), options.where, vocabulary, added);
  const std::string kind = model.byte_level ? "byte-level bpe" : "bpe";
  auto shared = std::make_shared<const Vocabulary>(std::move(vocabulary));
  model.vocabulary = shared;
  return make_tokenizer(std::move(shared), std::move(added), make_bpe_encoder(std::move(model)), kind);
}

}  // namespace

std::shared_ptr<const Tokenizer> parse_tokenizer_json(std::string_view text,
                                                      const TokenizerJsonOptions& options) {
  const std::string& where = options.where;
  const Json json = parse_json_object(text, where);
  const Json& model_json = require_field(json, "model", where);
  require_bpe(model_json, where);

  const PieceDecoder decoder = parse_decoder(json, where);
  BpeModel model;
  model.normalizer = parse_normalizer(json, where);
  PreTokenizerDescription words = parse_pre_tokenizer(json, where);
  model.pre_tokenizer = std::move(words.steps);
  model.byte_level = words.byte_level;
  model.byte_fallback = bool_field(model_json, "byte_fallback", where).value_or(false);
  model.fuse_unknown = bool_field(model_json, "fuse_unk", where).value_or(false);
  model.ignore_merges = bool_field(model_json, "ignore_merges", where).value_or(false);

  Vocabulary vocabulary;
  vocabulary.drop_first_space = decoder.drop_first_space;
  read_vocabulary(require_field(model_json, "vocab", where), decoder, where, vocabulary);
  read_merges(model_json, where, vocabulary, model.merges);
  AddedTokens added;
  read_added_tokens(json, where, vocabulary, model, added);
  if (const auto unknown = string_field(model_json, "unk_token", where)) {
    vocabulary.unknown = vocabulary.find(*unknown);
    if (!vocabulary.unknown) bad_input("{}: 'unk_token' is not in the vocabulary", where);
  }
  if (const auto leading = parse_leading_special_token(json, where)) {
    vocabulary.bos = vocabulary.find(*leading);
    if (!vocabulary.bos) bad_input("{}: the post-processor's first token is not in the vocabulary", where);
    vocabulary.add_bos = true;
  }
  return finish(options, std::move(vocabulary), std::move(added), std::move(model));
}

std::shared_ptr<const Tokenizer> parse_vocab_json(std::string_view vocab, std::string_view merges,
                                                  const TokenizerJsonOptions& options) {
  PieceDecoder decoder;
  decoder.byte_level = true;
  Vocabulary vocabulary;
  read_vocabulary(parse_json_object(vocab, options.where), decoder, options.where, vocabulary);
  BpeModel model;
  model.byte_level = true;
  if (options.config.add_prefix_space.value_or(false)) {
    PreTokenizerStep prefix;
    prefix.kind = PreTokenizerStep::Kind::kPrefixSpace;
    model.pre_tokenizer.push_back(std::move(prefix));
    vocabulary.drop_first_space = true;
  }
  model.pre_tokenizer.push_back(split_step(kGpt2Pattern, SplitBehavior::kIsolated, options.where));
  int32_t rank = 0;
  while (!merges.empty()) {
    std::string_view line = merges.substr(0, merges.find('\n'));
    merges.remove_prefix(std::min(merges.size(), line.size() + 1));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const bool is_header = line.substr(0, 8) == "#version";
    if (!line.empty() && !is_header) add_merge(line, rank++, options.where, vocabulary, model.merges);
  }
  return finish(options, std::move(vocabulary), {}, std::move(model));
}

std::shared_ptr<const Tokenizer> load_tokenizer_json(const TokenizerFiles& files) {
  const TokenizerJsonOptions options{files.where(files.vocabulary), tokenizer_config_of(files)};
  const std::string& text = files.at(files.vocabulary);
  if (files.vocabulary != "vocab.json") return parse_tokenizer_json(text, options);
  return parse_vocab_json(text, files.at("merges.txt"), options);
}

}  // namespace verbatim
