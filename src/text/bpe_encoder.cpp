#include "text/bpe_encoder.h"

#include <array>
#include <unordered_map>

#include "base/utf8.h"
#include "text/byte_level.h"

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
      if (character && is_normal(id)) characters_.emplace(utf8_character(text, 0), id);
    }
  }

  void encode(std::string_view segment, bool first, std::vector<Token>& tokens) const override {
    const std::string normalized = normalize(model_.normalizer, segment);
    PairMerger merger(model_.merges);
    if (model_.normalized_added.empty()) return encode_text(normalized, first, merger, tokens);
    for (const TextSegment& part : model_.normalized_added.split(normalized, true)) {
      if (part.token >= 0) {
        tokens.push_back(part.token);
      } else {
        encode_text(std::string(part.text), first, merger, tokens);
      }
      first = false;
    }
  }

 private:
  bool is_normal(Token token) const { return model_.vocabulary->pieces[token].kind == PieceKind::kNormal; }

  void encode_text(std::string text, bool first, PairMerger& merger, std::vector<Token>& tokens) const {
    const PreTokens words = pre_tokenize(model_.pre_tokenizer, std::move(text), first);
    for (const TextRange& range : words.ranges) {
      const std::string_view word = std::string_view(words.text).substr(range.begin, range.end - range.begin);
      if (model_.ignore_merges) {
        const auto whole =
            model_.vocabulary->find(model_.byte_level ? byte_level_text(word) : std::string(word));
        if (whole && is_normal(*whole)) {
          tokens.push_back(*whole);
          continue;
        }
      }
      const size_t begin = tokens.size();
      if (model_.byte_level) {
        append_bytes(word, tokens);
      } else {
        append_characters(word, tokens);
      }
      merger.merge(tokens, begin);
    }
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
