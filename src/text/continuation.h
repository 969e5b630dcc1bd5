#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace verbatim {

/// Encodes text that continues other text. Tokenizer::encode() treats every text as a beginning, before which
/// many vocabularies put a space.
class ContinuationEncoder {
 public:
  /// `tokenizer` outlives the encoder.
  explicit ContinuationEncoder(const Tokenizer& tokenizer);

  /// Appends the tokens of `text` (valid UTF-8) to `tokens`. Special tokens that are written out in it are
  /// treated as ordinary text. Returns whether the bytes of the tokens are exactly the text; they differ if
  /// the vocabulary normalizes text or lacks characters.
  bool encode(std::string_view text, std::vector<Token>& tokens) const;

 private:
  bool encode_after_line_break(std::string_view text, std::vector<Token>& tokens) const;

  const Tokenizer* tokenizer_;
  bool adds_space_;
};

/// The bytes of tokens that do not begin a text, without control tokens.
std::string inner_bytes(const Tokenizer& tokenizer, std::span<const Token> tokens);

/// Whether tokens[i], which is not the first, begins a word after a space in the middle of a line. Hardly any
/// vocabulary has tokens across such a place, so the texts before and after it can be encoded separately.
bool begins_word(const Tokenizer& tokenizer, std::span<const Token> tokens, size_t i);

}  // namespace verbatim
