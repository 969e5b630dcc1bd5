#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace verbatim {

/// Encodes text that goes on from other text. Tokenizer::encode takes all text for the beginning of one, and
/// many vocabularies put a space before that.
class ContinuationEncoder {
 public:
  /// `tokenizer` outlives the encoder.
  explicit ContinuationEncoder(const Tokenizer& tokenizer);

  /// Appends the tokens of `text` (valid UTF-8); special tokens written out in it are text like any other.
  /// Returns whether the bytes of these tokens are exactly the text: a vocabulary that normalizes text, or
  /// lacks characters, gives only something alike.
  bool encode(std::string_view text, std::vector<Token>& tokens) const;

 private:
  bool encode_after_line_break(std::string_view text, std::vector<Token>& tokens) const;

  const Tokenizer* tokenizer_;
  bool adds_space_;
};

/// The bytes of tokens inside a text, control tokens left out.
std::string inner_bytes(const Tokenizer& tokenizer, std::span<const Token> tokens);

/// Whether tokens[i], which is not the first, begins a word after a space in the middle of a line. Hardly any
/// vocabulary has tokens across such a place, so that the text before and after it can be encoded apart.
bool begins_word(const Tokenizer& tokenizer, std::span<const Token> tokens, size_t i);

}  // namespace verbatim
