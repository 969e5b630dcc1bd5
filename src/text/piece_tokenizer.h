#pragma once

#include <memory>
#include <string>

#include "text/added_tokens.h"
#include "text/piece_decoder.h"
#include "text/vocabulary.h"

namespace verbatim {

/// Turns plain text, without special tokens, into tokens. Immutable and safe to share between threads.
class SegmentEncoder {
 public:
  virtual ~SegmentEncoder() = default;
  /// Appends the tokens of `segment`, which is valid UTF-8 and not empty, to `tokens`. `first` says that the
  /// segment begins the text.
  virtual void encode(std::string_view segment, bool first, std::vector<Token>& tokens) const = 0;
};

/// Makes a tokenizer of its parts: the vocabulary, the added tokens that are searched for in the raw text,
/// and the encoder of the text between them. `kind` is the result of Tokenizer::kind(). `decoder` has made
/// the bytes of the pieces; nullptr if they depend on no place in a text.
std::shared_ptr<const Tokenizer> make_tokenizer(std::shared_ptr<const Vocabulary> vocabulary,
                                                AddedTokens added, std::unique_ptr<SegmentEncoder> encoder,
                                                std::string kind,
                                                std::shared_ptr<const PieceDecoder> decoder = nullptr);

}  // namespace verbatim
