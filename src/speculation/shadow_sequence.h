#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "speculation/sequence.h"
#include "text/continuation.h"

namespace verbatim {

/// The tokens that say in one vocabulary what a sequence says in another, kept in step with it: what is far
/// from the sequence's end is encoded once, in blocks that end between words, and the rest again and again,
/// so that most tokens stay what they were and a cache of them stays of use.
///
/// The shadow of a text is only like it where its vocabulary cannot write the text. When it becomes longer
/// than it may, it forgets the older half.
class ShadowSequence {
 public:
  /// Follows sequences of the vocabulary `from` in the vocabulary `to`, with at most `most` tokens.
  ShadowSequence(std::shared_ptr<const Tokenizer> from, std::shared_ptr<const Tokenizer> to, int64_t most);

  /// Takes in a sequence that went on, became shorter or is another one.
  void follow(std::span<const Token> tokens);

  /// The shadow; empty when there is nothing yet that its vocabulary has tokens for.
  Sequence& sequence() { return shadow_; }
  /// The bytes at the end of the text that the shadow leaves out: a UTF-8 character that is not complete.
  const std::string& pending() const { return pending_; }
  /// Whether the shadow has any text; control tokens are none.
  bool has_text() const { return has_text_; }
  /// Tokens of the shadow for a token of the sequence, on average.
  double ratio() const;

 private:
  /// Where an encoding that stays ends.
  struct Block {
    size_t end;            ///< in the followed sequence
    size_t shadow_tokens;  ///< in the shadow
    bool has_text;         ///< as of here
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
};

}  // namespace verbatim
