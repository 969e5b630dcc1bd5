#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/piece_trie.h"
#include "text/tokenizer.h"

namespace verbatim {

/// A token that is searched for in the text before the vocabulary's own rules apply.
struct AddedToken {
  std::string content;
  Token id = -1;
  bool special = false;      ///< found only if the caller allows special tokens
  bool strip_left = false;   ///< white space before it belongs to it
  bool strip_right = false;  ///< white space after it belongs to it
  bool single_word = false;  ///< found only where no letter or digit touches it
  bool normalized = false;   ///< searched for after normalization, not before
};

/// A stretch of text, or an added token found in it.
struct TextSegment {
  std::string_view text;
  Token token = -1;  ///< -1: plain text
};

/// A set of added tokens that is searched for.
class AddedTokens {
 public:
  /// Adds a token, unless its content is empty. A later token replaces an earlier one of the same content.
  /// Throws Error(kBadInput), naming `where`, if contents are absurdly long.
  void add(AddedToken token, const std::string& where);
  bool empty() const { return tokens_.empty(); }

  /// Cuts `text` (valid UTF-8) at the added tokens: the leftmost first, and the longest where several begin.
  /// Unless `special` is set, special tokens are treated as ordinary text; so are those that do not lie
  /// within one of the ranges `within`, if it is not null.
  std::vector<TextSegment> split(std::string_view text, bool special,
                                 const std::vector<ByteRange>* within = nullptr) const;

 private:
  const AddedToken* match(std::string_view text, size_t offset, bool special,
                          const std::vector<ByteRange>* within) const;

  std::vector<AddedToken> tokens_;
  PieceTrie contents_;  // with indices into tokens_
};

}  // namespace verbatim
