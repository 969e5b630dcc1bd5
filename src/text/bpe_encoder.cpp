#include "text/bpe_encoder.h"

#include <array>
#include <unordered_map>

#include "base/utf8.h"
#include "text/byte_level.h"
#include "text/piece_trie.h"

namespace verbatim {

namespace {

class BpeEncoder final : public SegmentEncoder {
 public:
  explicit BpeEncoder(BpeModel model) : model_(std::move(model)) {
    byte_tokens_.fill(-1);
    const Vocabulary& vocabulary = *model_.vocabulary;
    for (size_t byte = 0; byte < 256; ++byte) {
      const std::string text = model_.byte_level ? byte_level_text(std::string(1, static_cast<char>(byte)))
                                                 : byte_token_text(static_cast<unsigned char>(byte));
      if (const auto id = vocabulary.find(text)) byte_tokens_[byte] = *id;
    }
    for (const auto& [text, id] : vocabulary.ids) {
      const bool character = !text.empty() && utf8_length(text[0]) == text.size();
      if (character && vocabulary.builds_words(id)) characters_.emplace(utf8_character(text, 0), id);
    }
  }

  void encode(std::string_view segment, bool first, std::vector<Token>& tokens) const override {
    PairMerger merger(model_.merges);
    encode_words(model_.steps, segment, first, tokens,
                 [&](std::string_view word) { encode_word(word, merger, tokens); });
  }

 private:
  std::optional<Token> find_part(std::string_view text) const {
    const auto found = model_.vocabulary->find(text);
    return found && model_.vocabulary->builds_words(*found) ? found : std::nullopt;
  }

  void encode_word(std::string_view word, PairMerger& merger, std::vector<Token>& tokens) const {
    if (model_.ignore_merges) {
      const auto whole = find_part(model_.byte_level ? byte_level_text(word) : std::string(word));
      if (whole) return tokens.push_back(*whole);
    }
    const size_t begin = tokens.size();
    if (model_.byte_level) {
      append_bytes(word, tokens);
    } else if (model_.inner_prefix.empty() && model_.end_suffix.empty()) {
      append_characters(word, tokens);
    } else {
      append_marked_characters(word, tokens);
    }
    merger.merge(tokens, begin);
  }

  void append_bytes(std::string_view word, std::vector<Token>& tokens) const {
    bool after_unknown = false;
    for (const char c : word) {
      const Token token = byte_tokens_[static_cast<unsigned char>(c)];
      if (token >= 0) {
        tokens.push_back(token);
      } else {
        append_unknown(after_unknown, tokens);
      }
      after_unknown = token < 0;
    }
  }

  void append_characters(std::string_view word, std::vector<Token>& tokens) const {
    bool after_unknown = false;
    for (size_t i = 0; i < word.size();) {
      const size_t length = utf8_length(word[i]);
      const auto known = characters_.find(utf8_character(word, i));
      bool unknown = false;
      if (known != characters_.end()) {
        tokens.push_back(known->second);
      } else if (!append_fallback(word.substr(i, length), tokens)) {
        append_unknown(after_unknown, tokens);
        unknown = true;
      }
      after_unknown = unknown;
      i += length;
    }
  }

  /// Appends the characters of a word with what marks those within and at the end of words.
  void append_marked_characters(std::string_view word, std::vector<Token>& tokens) const {
    bool after_unknown = false;
    for (size_t i = 0; i < word.size();) {
      const size_t length = utf8_length(word[i]);
      std::string text = i > 0 ? model_.inner_prefix : std::string();
      text += word.substr(i, length);
      i += length;
      if (i == word.size()) text += model_.end_suffix;
      const auto known = find_part(text);
      const bool unknown = !known && !append_fallback(text, tokens);
      if (known) tokens.push_back(*known);
      if (unknown) append_unknown(after_unknown, tokens);
      after_unknown = unknown;
    }
  }

  bool append_fallback(std::string_view character, std::vector<Token>& tokens) const {
    if (!model_.byte_fallback) return false;
    for (const char c : character) {
      if (byte_tokens_[static_cast<unsigned char>(c)] < 0) return false;
    }
    for (const char c : character) tokens.push_back(byte_tokens_[static_cast<unsigned char>(c)]);
    return true;
  }

  void append_unknown(bool after_unknown, std::vector<Token>& tokens) const {
    if (!model_.vocabulary->unknown || (after_unknown && model_.fuse_unknown)) return;
    tokens.push_back(*model_.vocabulary->unknown);
  }

  BpeModel model_;
  std::array<Token, 256> byte_tokens_{};
  std::unordered_map<uint32_t, Token> characters_;
};

}  // namespace

std::unique_ptr<SegmentEncoder> make_bpe_encoder(BpeModel model) {
  return std::make_unique<BpeEncoder>(std::move(model));
}

}  // namespace verbatim
