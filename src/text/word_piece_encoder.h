#pragma once

#include <memory>
#include <string>

#include "text/piece_tokenizer.h"
#include "text/text_steps.h"

namespace verbatim {

/// A WordPiece model: a word is cut from left to right, and each token is the longest that fits.
struct WordPieceModel {
  std::shared_ptr<const Vocabulary> vocabulary;  ///< `unknown` stands for words that cannot be cut
  TextSteps steps;
  std::string inner_prefix;   ///< marks tokens that continue a word: "##"
  size_t longest_word = 100;  ///< characters; longer words are unknown
};

/// Makes the encoder of a WordPiece vocabulary, which has an unknown token. Throws Error(kBadInput), naming
/// `where`, if its texts are absurdly long.
std::unique_ptr<SegmentEncoder> make_word_piece_encoder(WordPieceModel model, const std::string& where);

}  // namespace verbatim
