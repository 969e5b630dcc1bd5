#include "text/tokenizer_json.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/printable.h"
#include "text/added_token_json.h"
#include "text/bounded_text.h"
#include "text/bpe_encoder.h"
#include "text/bpe_vocabulary.h"
#include "text/byte_level.h"
#include "text/piece_trie.h"
#include "text/step_json.h"
#include "text/tokenizer_json_steps.h"
#include "text/unigram_encoder.h"
#include "text/word_piece_encoder.h"

namespace verbatim {

namespace {

void set_piece(Token id, const std::string& text, const PieceDecoder& decoder, Vocabulary& vocabulary) {
  const bool is_byte = decoder.has_byte_tokens() && byte_token_value(text);
  vocabulary.set(id, text, is_byte ? PieceKind::kByte : PieceKind::kNormal,
                 decoder.decode(text, false, false));
}

void read_vocabulary(const Json& vocab, const PieceDecoder& decoder, const std::string& where,
                     Vocabulary& vocabulary) {
  if (!vocab.is_object()) bad_input("{}: the vocabulary must be an object of texts and ids", where);
  for (const auto& item : vocab.items()) {
    const int64_t id = require_token_id(item.value(), where);
    require_plausible_id(id, vocab.size(), where);
    set_piece(static_cast<Token>(id), item.key(), decoder, vocabulary);
  }
}

// A merge is a pair of texts, or one string with a space between them.
void read_merges(const Json& model, const std::string& where, const Vocabulary& vocabulary,
                 BpeModel& result) {
  MergeTable& merges = result.merges;
  const Json& list = require_field(model, "merges", where);
  if (!list.is_array()) bad_input("{}: 'merges' must be a list", where);
  merges.reserve(list.size());
  int32_t rank = 0;
  for (const Json& merge : list) {
    if (merge.is_string()) {
      add_merge(merge.get_ref<const std::string&>(), rank, where, vocabulary, merges, result.inner_prefix);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      add_merge(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>(), rank, where,
                vocabulary, merges, result.inner_prefix);
    } else {
      bad_input("{}: merge {} is neither a string nor a pair of strings", where, rank);
    }
    ++rank;
  }
}

void read_added_tokens(const Json& tokenizer, const PieceDecoder& decoder, const std::string& where,
                       Vocabulary& vocabulary, TextSteps& steps, AddedTokens& added) {
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
    if (!token.special) vocabulary.pieces[token.id].bytes = decoder.decode(token.content, false, true);
    // A special token is found where it is written, whatever normalization would make of it: a normalizer
    // that puts a space first would otherwise hide it in the middle of a text.
    if (token.special || !token.normalized) {
      added.add(std::move(token), where);
    } else {
      token.content = normalize(steps.normalizer, token.content);
      steps.normalized_added.add(std::move(token), where);
    }
  }
}

// The settings may repeat the file's own tokens, whose description in the file counts.
TokenizerConfig without_known_tokens(TokenizerConfig config, const Vocabulary& vocabulary) {
  const auto known = [&](const AddedToken& token) { return vocabulary.find(token.content).has_value(); };
  config.added.erase(std::remove_if(config.added.begin(), config.added.end(), known), config.added.end());
  return config;
}

/// What a tokenizer is made of, whatever its model is.
struct TokenizerParts {
  Vocabulary vocabulary;
  AddedTokens added;
  TextSteps steps;
  PieceDecoder decoder;
};

using MakeEncoder = std::function<std::unique_ptr<SegmentEncoder>(std::shared_ptr<const Vocabulary>)>;

std::shared_ptr<const Tokenizer> finish(const TokenizerJsonOptions& options, TokenizerParts parts,
                                        std::string kind, const MakeEncoder& make_encoder) {
  apply_tokenizer_config(without_known_tokens(options.config, parts.vocabulary), options.where,
                         parts.vocabulary, parts.added);
  for (const AddedToken& token : options.config.added) {
    Piece* const piece = parts.vocabulary.has(token.id) ? &parts.vocabulary.pieces[token.id] : nullptr;
    if (piece == nullptr || !piece->added || piece->kind != PieceKind::kNormal) continue;
    piece->bytes = parts.decoder.decode(piece->text, false, true);
  }
  parts.decoder.require_independent(parts.vocabulary);
  auto vocabulary = std::make_shared<const Vocabulary>(std::move(parts.vocabulary));
  auto encoder = make_encoder(vocabulary);
  return make_tokenizer(std::move(vocabulary), std::move(parts.added), std::move(encoder), std::move(kind),
                        std::make_shared<const PieceDecoder>(std::move(parts.decoder)));
}

/// Reads everything around the model, whose own tokens the vocabulary has already.
void read_surroundings(const Json& json, const std::string& where, TokenizerParts& parts) {
  Vocabulary& vocabulary = parts.vocabulary;
  parts.steps.normalizer = parse_normalizer(json, where);
  parts.steps.pre_tokenizer = parse_pre_tokenizer(json, where);
  vocabulary.drop_first_space = parts.decoder.drop_first_space;
  read_added_tokens(json, parts.decoder, where, vocabulary, parts.steps, parts.added);
  TextFrame frame = parse_post_processor(json, vocabulary, where);
  if (!frame.before.empty()) {
    vocabulary.bos = frame.before.front();
    vocabulary.add_bos = true;
    vocabulary.before = std::move(frame.before);
  }
  vocabulary.after = std::move(frame.after);
}

/// A mark that some vocabularies write before or after the texts of tokens.
std::string mark_field(const Json& model, const char* name, const std::string& standard,
                       const std::string& where) {
  std::string mark = string_field(model, name, where).value_or(standard);
  if (mark.size() > kLongestPiece) bad_input("{}: '{}' is absurdly long", where, name);
  return mark;
}

/// Whether words are sequences of bytes, which the model then sees as such and not as characters.
bool take_bytes(const BpeModel& model, PreTokenizer& steps) {
  const bool marks = !model.inner_prefix.empty() || !model.end_suffix.empty();
  if (marks || model.byte_fallback) return false;
  if (steps.empty() || steps.back().kind != PreTokenizerStep::Kind::kBytes) return false;
  steps.pop_back();
  return true;
}

std::shared_ptr<const Tokenizer> make_bpe(const Json& json, const Json& model_json,
                                          const TokenizerJsonOptions& options, TokenizerParts parts) {
  const std::string& where = options.where;
  const Json* const dropout = find_field(model_json, "dropout");
  if (dropout != nullptr && *dropout != 0) {
    bad_input("{}: a BPE model with 'dropout' encodes at random, which is not supported", where);
  }
  BpeModel model;
  model.byte_fallback = bool_field(model_json, "byte_fallback", where).value_or(false);
  model.fuse_unknown = bool_field(model_json, "fuse_unk", where).value_or(false);
  model.ignore_merges = bool_field(model_json, "ignore_merges", where).value_or(false);
  model.inner_prefix = mark_field(model_json, "continuing_subword_prefix", "", where);
  model.end_suffix = mark_field(model_json, "end_of_word_suffix", "", where);
  if (model.byte_fallback &&
      std::max(model.inner_prefix.size(), model.end_suffix.size()) >= BoundedText::kLargestGrowth) {
    bad_input(
        "{}: a mark within or behind words of {} bytes or more is not supported with 'byte_fallback', which "
        "would write each of them as a token",
        where, BoundedText::kLargestGrowth);
  }
  read_vocabulary(require_field(model_json, "vocab", where), parts.decoder, where, parts.vocabulary);
  read_merges(model_json, where, parts.vocabulary, model);
  read_surroundings(json, where, parts);
  if (const auto unknown = string_field(model_json, "unk_token", where)) {
    parts.vocabulary.unknown = parts.vocabulary.find(*unknown);
    if (!parts.vocabulary.unknown) bad_input("{}: 'unk_token' is not in the vocabulary", where);
  }
  model.byte_level = take_bytes(model, parts.steps.pre_tokenizer);
  model.steps = std::move(parts.steps);
  const char* const kind = model.byte_level ? "byte-level bpe" : "bpe";
  return finish(options, std::move(parts), kind, [&](std::shared_ptr<const Vocabulary> vocabulary) {
    model.vocabulary = std::move(vocabulary);
    return make_bpe_encoder(std::move(model));
  });
}

std::shared_ptr<const Tokenizer> make_unigram(const Json& json, const Json& model_json,
                                              const TokenizerJsonOptions& options, TokenizerParts parts) {
  const std::string& where = options.where;
  UnigramModel model;
  model.byte_fallback = bool_field(model_json, "byte_fallback", where).value_or(false);
  const Json& vocab = require_field(model_json, "vocab", where);
  if (!vocab.is_array()) bad_input("{}: a Unigram vocabulary must be a list of texts and scores", where);
  if (vocab.size() > INT32_MAX) bad_input("{}: the vocabulary has {} tokens", where, vocab.size());
  for (const Json& item : vocab) {
    const size_t id = model.scores.size();
    if (!item.is_array() || item.size() != 2 || !item[0].is_string() || !item[1].is_number()) {
      bad_input("{}: token {} of the Unigram vocabulary is no pair of a text and a score", where, id);
    }
    set_piece(static_cast<Token>(id), item[0].get_ref<const std::string&>(), parts.decoder, parts.vocabulary);
    model.scores.push_back(item[1].get<double>());
  }
  if (const Json* const unknown = find_field(model_json, "unk_id")) {
    const int64_t id = require_token_id(*unknown, where);
    if (id >= static_cast<int64_t>(vocab.size())) bad_input("{}: 'unk_id' is not in the vocabulary", where);
    model.unknown = static_cast<Token>(id);
    parts.vocabulary.unknown = model.unknown;
  }
  read_surroundings(json, where, parts);
  model.steps = std::move(parts.steps);
  return finish(options, std::move(parts), "unigram", [&](std::shared_ptr<const Vocabulary> vocabulary) {
    model.vocabulary = std::move(vocabulary);
    return make_unigram_encoder(std::move(model), where);
  });
}

std::shared_ptr<const Tokenizer> make_word_piece(const Json& json, const Json& model_json,
                                                 const TokenizerJsonOptions& options, TokenizerParts parts) {
  const std::string& where = options.where;
  WordPieceModel model;
  model.inner_prefix = mark_field(model_json, "continuing_subword_prefix", "##", where);
  if (find_field(model_json, "max_input_chars_per_word") != nullptr) {
    model.longest_word = count_field(model_json, "max_input_chars_per_word", where);
  }
  read_vocabulary(require_field(model_json, "vocab", where), parts.decoder, where, parts.vocabulary);
  parts.vocabulary.unknown =
      parts.vocabulary.find(string_field(model_json, "unk_token", where).value_or("[UNK]"));
  if (!parts.vocabulary.unknown) bad_input("{}: 'unk_token' is not in the vocabulary", where);
  read_surroundings(json, where, parts);
  model.steps = std::move(parts.steps);
  return finish(options, std::move(parts), "wordpiece", [&](std::shared_ptr<const Vocabulary> vocabulary) {
    model.vocabulary = std::move(vocabulary);
    return make_word_piece_encoder(std::move(model), where);
  });
}

/// The kind of the model. Files from before it was named are told apart by what they hold.
std::string model_type(const Json& model, const std::string& where) {
  if (const auto type = string_field(model, "type", where)) return *type;
  if (find_field(model, "merges") != nullptr) return "BPE";
  const Json* const vocab = find_field(model, "vocab");
  if (vocab != nullptr && vocab->is_array()) return "Unigram";
  return find_field(model, "max_input_chars_per_word") != nullptr ? "WordPiece" : "without a type";
}

}  // namespace

std::shared_ptr<const Tokenizer> parse_tokenizer_json(std::string_view text,
                                                      const TokenizerJsonOptions& options) {
  const std::string& where = options.where;
  const Json file = parse_json_object(text, where);
  const Json& model = require_field(file, "model", where);
  const std::string type = model_type(model, where);
  TokenizerParts parts;
  parts.decoder = parse_decoder(file, where);
  if (type == "BPE") return make_bpe(file, model, options, std::move(parts));
  if (type == "Unigram") return make_unigram(file, model, options, std::move(parts));
  if (type == "WordPiece") return make_word_piece(file, model, options, std::move(parts));
  bad_input("{}: the tokenizer model '{}' is not supported (supported: BPE, Unigram, WordPiece)", where,
            printable(type));
}

std::shared_ptr<const Tokenizer> parse_vocab_json(std::string_view vocab, std::string_view merges,
                                                  const TokenizerJsonOptions& options) {
  TokenizerParts parts;
  parts.decoder.where = options.where;
  parts.decoder.steps.emplace_back().kind = DecoderStep::Kind::kByteLevel;
  Vocabulary& vocabulary = parts.vocabulary;
  read_vocabulary(parse_json_object(vocab, options.where), parts.decoder, options.where, vocabulary);
  BpeModel model;
  model.byte_level = true;
  PreTokenizer& steps = model.steps.pre_tokenizer;
  if (options.config.add_prefix_space.value_or(false)) {
    steps.emplace_back().kind = PreTokenizerStep::Kind::kPrefixSpace;
    vocabulary.drop_first_space = true;
  }
  steps.push_back(split_step(kGpt2Pattern, SplitBehavior::kIsolated, options.where));
  int32_t rank = 0;
  while (!merges.empty()) {
    std::string_view line = merges.substr(0, merges.find('\n'));
    merges.remove_prefix(std::min(merges.size(), line.size() + 1));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const bool is_header = line.substr(0, 8) == "#version";
    if (!line.empty() && !is_header) add_merge(line, rank++, options.where, vocabulary, model.merges);
  }
  return finish(options, std::move(parts), "byte-level bpe", [&](std::shared_ptr<const Vocabulary> shared) {
    model.vocabulary = std::move(shared);
    return make_bpe_encoder(std::move(model));
  });
}

std::shared_ptr<const Tokenizer> load_tokenizer_json(const TokenizerFiles& files) {
  const TokenizerJsonOptions options{files.where(files.vocabulary), tokenizer_config_of(files)};
  const std::string& text = files.at(files.vocabulary);
  if (files.vocabulary != "vocab.json") return parse_tokenizer_json(text, options);
  return parse_vocab_json(text, files.at("merges.txt"), options);
}

}  // namespace verbatim
