#pragma once

#include <memory>
#include <vector>

#include "drafting/drafter.h"
#include "drafting/shadow_sequence.h"

namespace verbatim {

/// Drafts with a drafter of another vocabulary, by way of text (ML-SpecQD §III-E). It keeps a shadow of the
/// sequence in the other vocabulary, lets the inner drafter continue the shadow, and encodes the drafted text
/// in the vocabulary of the sequence.
///
/// The draft is a chain. The inner drafter takes its likeliest tokens at every temperature, because the
/// sampler's noise belongs to tokens of the sequence's vocabulary, and without it the likeliest token is kept
/// most often. For the rejection rule a token of the draft therefore counts as certain, which keeps the
/// model's distribution.
class TranslatingDrafter : public Drafter {
 public:
  /// `inner` drafts in the vocabulary `theirs`, for shadows of at most `capacity` tokens. `ours` is the
  /// vocabulary of the sequences that are drafted for.
  TranslatingDrafter(std::unique_ptr<Drafter> inner, std::shared_ptr<const Tokenizer> theirs,
                     std::shared_ptr<const Tokenizer> ours, int64_t capacity);

  /// Proposes tokens as Drafter::propose() does. The thresholds of `limits` hold for tokens of either
  /// vocabulary. If only its length ended the inner draft, the last token is left out, because with more text
  /// it might have been a longer one.
  void propose(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t room,
               Draft& draft) override;
  void observe(const Sequence&) override {}

 private:
  /// A token of the inner draft: the place in text_ where it begins, and its confidence.
  struct Mark {
    size_t begin;
    float confidence;
  };
  /// A token that may join the draft.
  struct Found {
    Token token;
    size_t end;  ///< the end of its bytes in text_
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
  ContinuationEncoder encoder_;  // of the vocabulary ours_
  int64_t capacity_;
  ShadowSequence shadow_;
  Sampler greedy_{SamplingOptions{}};
  Draft inner_draft_;
  std::string text_;              // the text of the inner draft
  std::vector<Mark> marks_;       // the tokens of the inner draft that have text
  std::optional<Token> last_;     // the control token at the end of the inner draft, in our vocabulary
  float last_confidence_ = 0.0f;  // the confidence of last_
  bool ended_ = false;            // whether nothing can follow text_ but last_
  std::vector<Token> encoded_;    // scratch
  std::vector<Found> found_;      // the tokens of text_ in our vocabulary
};

}  // namespace verbatim
