#pragma once

#include <memory>
#include <vector>

#include "speculation/drafter.h"
#include "speculation/shadow_sequence.h"

namespace verbatim {

/// Drafts with a drafter of another vocabulary, by way of the text (ML-SpecQD §III-E): keeps a shadow of the
/// sequence in the other vocabulary, lets the other drafter go on from there, and encodes what it says as it
/// would stand in the sequence.
///
/// The draft is a chain. The other drafter takes its likeliest tokens at every temperature: the sampler's
/// noise belongs to tokens of the sequence's vocabulary, and of all tokens the likeliest is kept most often.
/// Hence a token of the draft counts as certain for the rejection rule, which then keeps the distribution.
class TranslatingDrafter : public Drafter {
 public:
  /// `inner` drafts in the vocabulary `theirs`, for sequences of at most `capacity` tokens; `ours` is that of
  /// the sequences drafted for.
  TranslatingDrafter(std::unique_ptr<Drafter> inner, std::shared_ptr<const Tokenizer> theirs,
                     std::shared_ptr<const Tokenizer> ours, int64_t capacity);

  /// Of the limits, the thresholds hold for tokens of either vocabulary. Where only its length ended the
  /// inner draft, the last token is left out: with more text it might have become another, longer one.
  void propose(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t room,
               Draft& draft) override;
  void observe(const Sequence&) override {}

 private:
  /// Where a token of the inner draft begins in its text.
  struct Mark {
    size_t begin;
    float confidence;
  };
  /// A token that may join the draft.
  struct Found {
    Token token;
    size_t end;  ///< of its bytes in the text
  };

  void draft_text(const DraftLimits& limits, int64_t most, Sampler& sampler);
  bool read_inner_draft();
  size_t context_of(const std::vector<Token>& tokens) const;
  bool encode_after(const std::vector<Token>& tokens);
  bool encode_from(std::string_view text, bool begins, size_t known);
  void add_found(const DraftLimits& limits, int64_t most, Draft& draft) const;

  std::unique_ptr<Drafter> inner_;
  std::shared_ptr<const Tokenizer> theirs_;
  std::shared_ptr<const Tokenizer> ours_;
  ContinuationEncoder encoder_;  // of ours
  int64_t capacity_;
  ShadowSequence shadow_;
  Sampler greedy_{SamplingOptions{}};
  Draft inner_draft_;
  std::string text_;           // what the inner draft says
  std::vector<Mark> marks_;    // its tokens with text
  std::optional<Token> last_;  // in our vocabulary, the control token that ends it
  float last_confidence_ = 0.0f;
  bool ended_ = false;          // nothing can follow its text but last_
  std::vector<Token> encoded_;  // scratch
  std::vector<Found> found_;    // ends count from the beginning of text_
};

}  // namespace verbatim
