#include "text/word_piece_encoder.h"

#include "base/utf8.h"
#include "text/piece_trie.h"

namespace verbatim {

namespace {

bool has_more_characters(std::string_view text, size_t limit) {
  size_t count = 0;
  for (size_t i = 0; i < text.size() && count <= limit; i += utf8_length(text[i])) ++count;
  return count > limit;
}

class WordPieceEncoder final : public SegmentEncoder {
 public:
  WordPieceEncoder(WordPieceModel model, const std::string& where) : model_(std::move(model)) {
    const std::string_view prefix = model_.inner_prefix;
    const Vocabulary& vocabulary = *model_.vocabulary;
    for (size_t id = 0; id < vocabulary.pieces.size(); ++id) {
      const auto token = static_cast<Token>(id);
      if (!vocabulary.builds_words(token)) continue;
      const std::string_view text = vocabulary.pieces[id].text;
      beginnings_.add(text, token, where);
      if (text.starts_with(prefix)) continuations_.add(text.substr(prefix.size()), token, where);
    }
  }

  void encode(std::string_view segment, bool first, std::vector<Token>& tokens) const override {
    encode_words(model_.steps, segment, first, tokens,
                 [&](std::string_view word) { encode_word(word, tokens); });
  }

 private:
  void encode_word(std::string_view word, std::vector<Token>& tokens) const {
    const size_t size = tokens.size();
    bool known = !has_more_characters(word, model_.longest_word);
    for (size_t begin = 0; known && begin < word.size();) {
      const PieceTrie& texts = begin == 0 ? beginnings_ : continuations_;
      Token longest = -1;
      size_t longest_end = begin;
      texts.each_at(word, begin, [&](Token token, size_t end) {
        longest = token;
        longest_end = end;
      });
      known = longest >= 0;
      if (known) tokens.push_back(longest);
      begin = longest_end;
    }
    if (known) return;
    tokens.resize(size);
    tokens.push_back(*model_.vocabulary->unknown);
  }

  WordPieceModel model_;
  PieceTrie beginnings_;
  PieceTrie continuations_;
};

}  // namespace

std::unique_ptr<SegmentEncoder> make_word_piece_encoder(WordPieceModel model, const std::string& where) {
  return std::make_unique<WordPieceEncoder>(std::move(model), where);
}

}  // namespace verbatim
