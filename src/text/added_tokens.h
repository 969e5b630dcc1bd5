#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace verbatim {

/// A token that is found in the text as it stands, before the vocabulary's own rules apply.
struct AddedToken {
  std::string content;
  Token id = -1;
  bool special = false;      ///< only where the caller allows special tokens
  bool strip_left = false;   ///< swallows the white space before it
  bool strip_right = false;  ///< swallows the white space after it
  bool single_word = false;  ///< only where no letter or digit touches it
  bool normalized = false;   ///< looked for after normalization
};

/// A stretch of text, or an added token found in it.
struct TextSegment {
  std::string_view text;
  Token token = -1;  ///< -1: plain text
};

/// A set of added tokens to look for.
class AddedTokens {
 public:
  /// Tokens without content are left out. A later token replaces an earlier one of the same content.
  void add(AddedToken token);
  bool empty() const { return tokens_.empty(); }

  /// Cuts `text` (valid UTF-8) at the added tokens: leftmost first, and the longest where several begin.
  /// Special tokens are text like any other unless `special`.
  std::vector<TextSegment> split(std::string_view text, bool special) const;

 private:
  const AddedToken* match(std::string_view text, size_t offset, bool special) const;

  std::vector<AddedToken> tokens_;
  std::array<std::vector<size_t>, 256> by_first_byte_;  // indices into tokens_, longest content first
};

}  // namespace verbatim
