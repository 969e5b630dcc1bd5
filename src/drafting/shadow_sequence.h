#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "drafting/sequence.h"
#include "text/continuation.h"

namespace verbatim {

/// A copy of a sequence in another vocabulary: the shadow has tokens for the same text, and is kept in step
/// with the sequence. Text far from the end is encoded once, in blocks that end between words, and the rest
/// anew each time, so that most tokens stay the same and a cache of them remains valid.
///
/// Where the other vocabulary cannot write the text, the shadow's text only resembles it. A shadow that
/// becomes longer than `most` tokens forgets its older half.
class ShadowSequence {
 public:
  /// Follows sequences of the vocabulary `from` in the vocabulary `to`, with at most `most` tokens.
  ShadowSequence(std::shared_ptr<const Tokenizer> from, std::shared_ptr<const Tokenizer> to, int64_t most);

  /// Brings the shadow up to date with a sequence, which may have grown, become shorter, or be another one.
  void follow(std::span<const Token> tokens);

  /// The shadow; empty if the sequence has no text yet that the other vocabulary has tokens for.
  Sequence& sequence() { return shadow_; }
  /// The bytes at the end of the text that the shadow leaves out: an incomplete UTF-8 character.
  const std::string& pending() const { return pending_; }
  /// Whether the shadow has any text; control tokens have none.
  bool has_text() const { return has_text_; }
  /// The average number of tokens of the shadow for one token of the sequence.
  double ratio() const;

 private:
  /// The end of a part of the text whose encoding is final.
  struct Block {
    size_t end;            ///< the number of followed tokens up to here
    size_t shadow_tokens;  ///< the number of tokens of the shadow up to here
    bool has_text;         ///< has_text_ as it was here
    bool begun;            ///< begun_ as it was here
  };

  void encode_all();
  size_t find_cut(size_t begin) const;
  void encode(size_t begin, size_t end);
  void encode_text(std::string text, bool may_be_cut);

  std::shared_ptr<const Tokenizer> from_;
  std::shared_ptr<const Tokenizer> to_;
  ContinuationEncoder encoder_;
  size_t most_;
  std::vector<Token> followed_;
  size_t origin_ = 0;  // the first of the followed tokens that the shadow says
  std::vector<Block> blocks_;
  Sequence shadow_;
  std::string pending_;
  bool has_text_ = false;
  bool begun_ = false;  // whether there was a token of text, with bytes or without
};

}  // namespace verbatim
