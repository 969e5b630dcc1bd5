#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "text/piece_tokenizer.h"
#include "text/text_steps.h"

namespace verbatim {

/// A Unigram model: of all ways to cut a word into tokens it takes the one whose scores have the largest sum.
struct UnigramModel {
  std::shared_ptr<const Vocabulary> vocabulary;
  TextSteps steps;
  std::vector<double> scores;    ///< by token
  std::optional<Token> unknown;  ///< stands for characters that no token begins
  bool byte_fallback = false;    ///< unknown characters are written as byte tokens
};

/// Makes the encoder of a Unigram vocabulary. Throws Error(kBadInput), naming `where`, if its texts are
/// absurdly long.
std::unique_ptr<SegmentEncoder> make_unigram_encoder(UnigramModel model, const std::string& where);

}  // namespace verbatim
