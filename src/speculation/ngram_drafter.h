#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "speculation/drafter.h"
#include "speculation/ngram_table.h"
#include "verbatim/recipe.h"

namespace verbatim {

/// Drafts what followed the same tokens before, in the sequence or in a table counted beforehand: prompt
/// lookup and a statistical model at once, for no pass of any model. What is verified is learnt at once, in a
/// table of its own: the little that the sequence says about itself weighs more than much from elsewhere.
///
/// A guess's confidence is measured, not assumed. Before a verified token is learnt, the best guess of either
/// table and every order is compared with it; so for each of these, and each share that the guess had of what
/// was counted, it is known how often such a guess was right lately. Of all that know the context, each token
/// takes the highest confidence that one of them gives it.
class NgramDrafter : public Drafter {
 public:
  /// Loads level.table if there is one; its own orders count, not the level's. Throws Error(kBadInput) when
  /// that is malformed or was counted with a vocabulary of another size.
  NgramDrafter(const DraftLevel& level, int32_t vocabulary);
  NgramDrafter(const NgramDrafter&) = delete;
  NgramDrafter& operator=(const NgramDrafter&) = delete;

  /// Neither learns anything nor asks for noise; a chain of the best guesses, and the next best beside them
  /// as leaves where limits.breadth allows. Of all these the draft keeps those that are likeliest to be
  /// reached.
  void propose(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t room,
               Draft& draft) override;
  /// Learns the tokens that are new since the last call; those of a prompt, too, if it hears of them. A
  /// sequence that became shorter, or another one, is learnt from where it differs.
  void observe(const Sequence& sequence) override;

  /// The same for plain lists of tokens.
  void propose(std::span<const int32_t> tokens, const DraftLimits& limits, int64_t room, Draft& draft);
  void observe(std::span<const int32_t> tokens);

  /// A guess for the token after `context`.
  struct Guessed {
    int32_t token;
    float confidence;
  };
  /// The best guesses, best first, at most out.size() of them; their confidences sum up to at most 1. Returns
  /// how many.
  size_t guess(std::span<const int32_t> context, std::span<Guessed> out) const;

  /// What it learnt.
  const NgramTable& table() const { return *own_; }

 private:
  static constexpr size_t kBuckets = 12;
  /// How often guesses were right: an average over some 100 of them.
  struct HitRate {
    float rate = 0.0f;
    float weight = 0.0f;  ///< guesses that it stands for
  };
  struct Pick {
    int32_t token;
    int32_t depth;
    int32_t rank;  ///< 0: on the chain, else a leaf beside it
    float confidence;
    float reached;  ///< the product of the confidences up to here
  };

  /// A table and how well it did, by order.
  struct Source {
    std::shared_ptr<const NgramTable> table;
    std::vector<std::array<HitRate, kBuckets>> hit_rates;
  };

  static Source source_of(std::shared_ptr<const NgramTable> table);
  size_t common_length(std::span<const int32_t> tokens) const;
  void learn(std::span<const int32_t> context, int32_t token);

  std::shared_ptr<NgramTable> own_;  ///< what the sequence taught
  std::vector<Source> sources_;      ///< own_ and perhaps the one counted beforehand
  int32_t longest_;
  std::vector<int32_t> learnt_;  ///< the sequence as far as it was learnt
  size_t seen_ = 0;              ///< its length at the last call
  std::vector<int32_t> tail_;    ///< the end of the sequence and the chain
  std::vector<Pick> picks_;
};

}  // namespace verbatim
