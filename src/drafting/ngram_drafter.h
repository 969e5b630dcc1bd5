#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "drafting/drafter.h"
#include "drafting/ngram_table.h"
#include "verbatim/recipe.h"

namespace verbatim {

/// Drafts tokens that followed the same context before, in the sequence itself or in a table counted
/// beforehand. It is prompt lookup and a statistical model in one, and takes no pass of any model. Verified
/// tokens are learnt at once, in a table of the sequence's own, because the little that a text says about
/// itself weighs more than much that other texts say.
///
/// The confidence of a guess is measured. Before a verified token is learnt, the best guess of each table and
/// each order is compared with it. So the drafter knows, by table, order and the guess's share of the counted
/// followers, how often such guesses were right lately. A token's confidence is the highest that any table
/// and order gives it.
class NgramDrafter : public Drafter {
 public:
  /// Makes the drafter of a level and loads the file level.table, if that is named. The file's longest and
  /// shortest orders replace the level's. Throws Error(kBadInput) if the file is malformed or was counted
  /// with a vocabulary of another size.
  NgramDrafter(const DraftLevel& level, int32_t vocabulary);
  NgramDrafter(const NgramDrafter&) = delete;
  NgramDrafter& operator=(const NgramDrafter&) = delete;

  /// Proposes a chain of best guesses, with the next best ones as leaves if limits.breadth allows them. If
  /// there are more than limits.nodes, those most likely to be reached stay. A token that ends the sequence
  /// ends the chain. It learns nothing and does not use the noise.
  void propose(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t room,
               Draft& draft) override;
  /// Learns the tokens that are new since the last call, those of a prompt included. A sequence that became
  /// shorter, or is another one, is learnt from the first token that differs.
  void observe(const Sequence& sequence) override;

  /// Does what propose() does, for a plain list of tokens, after which nothing is known to end the sequence
  /// if `sampler` is null.
  void propose(std::span<const int32_t> tokens, const DraftLimits& limits, int64_t room, Draft& draft,
               const Sampler* sampler = nullptr);
  /// Does what observe() does, for a plain list of tokens.
  void observe(std::span<const int32_t> tokens);

  /// A guess for the token after `context`.
  struct Guessed {
    int32_t token;
    float confidence;
  };
  /// Writes the best guesses for the token after `context` to `out`, best first, at most out.size() of them.
  /// Their confidences add up to at most 1. Returns the number of guesses.
  size_t guess(std::span<const int32_t> context, std::span<Guessed> out) const;

  /// The table of what was learnt from sequences.
  const NgramTable& table() const { return *own_; }

 private:
  static constexpr size_t kBuckets = 12;
  /// The share of guesses that were right: an average over about the last 100.
  struct HitRate {
    float rate = 0.0f;
    float weight = 0.0f;  ///< the number of guesses that the average is made of
  };
  struct Pick {
    int32_t token;
    int32_t depth;
    int32_t rank;  ///< 0: on the chain, else a leaf beside it
    float confidence;
    float reached;  ///< the product of the confidences up to here
  };

  /// A table and its hit rates, by order and by the share of the guess.
  struct Source {
    std::shared_ptr<const NgramTable> table;
    std::vector<std::array<HitRate, kBuckets>> hit_rates;
  };

  static Source source_of(std::shared_ptr<const NgramTable> table);
  size_t common_length(std::span<const int32_t> tokens) const;
  void learn(std::span<const int32_t> context, int32_t token);

  std::shared_ptr<NgramTable> own_;  ///< the table learnt from sequences
  std::vector<Source> sources_;      ///< own_ and perhaps the one counted beforehand
  int32_t longest_;
  std::vector<int32_t> learnt_;  ///< the sequence as far as it was learnt
  size_t seen_ = 0;              ///< its length at the last call
  std::vector<int32_t> tail_;    ///< the end of the sequence and the chain
  std::vector<Pick> picks_;
};

}  // namespace verbatim
