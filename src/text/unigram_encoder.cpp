#include "text/unigram_encoder.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "text/piece_trie.h"

namespace verbatim {

namespace {

// How much worse than the worst token a character without a token is.
constexpr double kUnknownPenalty = 10.0;

/// Stands for a token where a character is unknown.
constexpr Token kUnknownCharacter = -1;

/// The best way to cut a word up to some place: its score, and where its last token begins.
struct Place {
  double score = 0.0;
  size_t begin = 0;
  Token token = kUnknownCharacter;
  bool reached = false;
};

class UnigramEncoder final : public SegmentEncoder {
 public:
  UnigramEncoder(UnigramModel model, const std::string& where) : model_(std::move(model)) {
    const Vocabulary& vocabulary = *model_.vocabulary;
    byte_tokens_.fill(-1);
    double least = 0.0;
    for (size_t id = 0; id < model_.scores.size(); ++id) {
      least = id == 0 ? model_.scores[id] : std::min(least, model_.scores[id]);
      const Piece& piece = vocabulary.pieces[id];
      const auto token = static_cast<Token>(id);
      if (vocabulary.builds_words(token) || piece.kind == PieceKind::kByte) {
        texts_.add(piece.text, token, where);
      }
      const auto byte = byte_token_value(piece.text);
      if (byte && piece.text == byte_token_text(*byte)) byte_tokens_[*byte] = token;
    }
    unknown_score_ = least - kUnknownPenalty;
  }

  void encode(std::string_view segment, bool first, std::vector<Token>& tokens) const override {
    std::vector<Place> places;  // kept from word to word
    encode_words(model_.steps, segment, first, tokens,
                 [&](std::string_view word) { encode_word(word, places, tokens); });
  }

 private:
  void encode_word(std::string_view word, std::vector<Place>& places, std::vector<Token>& tokens) const {
    find_best(word, places);
    // The tokens come out from the last to the first.
    const size_t begin = tokens.size();
    for (size_t end = word.size(); end > 0;) {
      const Place& place = places[end];
      if (place.token != kUnknownCharacter && place.token != model_.unknown) {
        tokens.push_back(place.token);
        end = place.begin;
        continue;
      }
      // Neighbouring unknown characters are one text.
      size_t start = place.begin;
      const auto is_unknown = [&](const Place& other) {
        return other.token == kUnknownCharacter || other.token == model_.unknown;
      };
      while (start > 0 && is_unknown(places[start])) start = places[start].begin;
      append_unknown_reversed(word.substr(start, end - start), tokens);
      end = start;
    }
    std::reverse(tokens.begin() + static_cast<std::ptrdiff_t>(begin), tokens.end());
  }

  void find_best(std::string_view word, std::vector<Place>& places) const {
    places.assign(word.size() + 1, Place{});
    const auto reach = [&](size_t begin, size_t end, double score, Token token) {
      Place& place = places[end];
      if (place.reached && !(score > place.score)) return;
      place = {score, begin, token, true};
    };
    for (size_t begin = 0; begin < word.size();) {
      const double score = places[begin].score;
      const size_t character = utf8_length(word[begin]);
      bool known = false;
      texts_.each_at(word, begin, [&](Token token, size_t end) {
        reach(begin, end, score + model_.scores[static_cast<size_t>(token)], token);
        known = known || end - begin == character;
      });
      if (!known) reach(begin, begin + character, score + unknown_score_, kUnknownCharacter);
      begin += character;
    }
  }

  void append_unknown_reversed(std::string_view text, std::vector<Token>& tokens) const {
    // Several characters that are unknown one by one may be a token together, if a bad one.
    const auto whole = model_.vocabulary->find(text);
    if (whole && model_.vocabulary->builds_words(*whole)) return tokens.push_back(*whole);
    const auto has_token = [&](char c) { return byte_tokens_[static_cast<unsigned char>(c)] >= 0; };
    if (model_.byte_fallback && std::all_of(text.begin(), text.end(), has_token)) {
      for (size_t i = text.size(); i > 0; --i) {
        tokens.push_back(byte_tokens_[static_cast<unsigned char>(text[i - 1])]);
      }
    } else if (model_.unknown) {
      tokens.push_back(*model_.unknown);
    } else {
      bad_input("the vocabulary has no token for '{}' in the text, and none for what is unknown",
                printable(text.substr(0, utf8_length(text[0]))));
    }
  }

  UnigramModel model_;
  PieceTrie texts_;
  std::array<Token, 256> byte_tokens_{};
  double unknown_score_ = 0.0;
};

}  // namespace

std::unique_ptr<SegmentEncoder> make_unigram_encoder(UnigramModel model, const std::string& where) {
  return std::make_unique<UnigramEncoder>(std::move(model), where);
}

}  // namespace verbatim
