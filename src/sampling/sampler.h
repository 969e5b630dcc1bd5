#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sampling/filters.h"
#include "sampling/guess.h"
#include "sampling/gumbel.h"
#include "structure/structure_cursor.h"
#include "verbatim/sampling.h"

namespace verbatim {

/// What decides which tokens a sequence may continue with, a filter and a structure, and the arguments to
/// call them with. Where there are both, a token must be allowed by both.
struct Constraint {
  TokenFilter filter = {};  ///< empty: every token is allowed
  /// Null: every token is allowed. Copies of a constraint share it.
  std::shared_ptr<StructureCursor> structure = nullptr;
  size_t first_generated = 0;  ///< the position of the first token that filter and structure are told, and of
                               ///< the first one that the presence and frequency penalties count
  int32_t vocabulary = 0;      ///< the number of tokens that the filter decides on
  std::vector<int32_t> ends = {};  ///< the tokens after which the sequence ends
};

/// Chooses tokens: argmax(filtered logits / temperature + gumbel(seed, position, token)). The noise comes
/// from a counter-based generator, so a drafter and a verifier that look at the same position see the same
/// noise, and a drafted token is kept exactly when it is the token that plain sampling would have produced.
class Sampler {
 public:
  /// Throws Error(kUsage) for settings outside their range, naming the setting.
  explicit Sampler(const SamplingOptions& options, Constraint constraint = {});

  /// The token at `position` of a sequence (counted from 0), from the logits of the position before it.
  /// `history` holds the tokens of positions 0 .. position - 1 (the repetition penalty and the filter read
  /// it). Ties go to the smaller token; NaN counts as minus infinity. Throws Error(kBadInput) when no logit
  /// is above minus infinity, and Error(kUsage) when the structure, the filter or the biases leave none.
  /// Without a structure and a filter it does not allocate after the first call with a vocabulary of that
  /// size.
  int32_t sample(std::span<const float> logits, int64_t position, std::span<const int32_t> history);

  /// The tokens that sample() may choose given a draft's logits: those of the best scores, best first, at
  /// most out.size() ≤ kMostGuesses of them and fewer where the filters leave fewer. Returns how many; the
  /// first is sample()'s choice. 0 when no logit is above minus infinity, and when the structure or the
  /// filter throws: a draft is only a guess, of a text that the model may never write. An infinite logit
  /// leaves no second guess.
  ///
  /// The confidence of a guess is at temperature 0 its probability (the softmax over all penalised logits),
  /// above 0 the softmax of logit + temperature · noise among the kGumbelBest tokens of the best scores: the
  /// noise being known, what is left to chance is by how much the draft's logits are wrong.
  ///
  /// A draft with a smaller vocabulary gives fewer logits; tokens of the history beyond them are ignored.
  /// Without a structure and a filter best() does not allocate after the first call with a vocabulary of that
  /// size.
  size_t best(std::span<const float> logits, int64_t position, std::span<const int32_t> history,
              std::span<Guess> out);

  /// The probabilities with which sample() draws its tokens if the noise is not known: the softmax of logit /
  /// temperature over what the filters leave, 0 for all others; at temperature 0, or beside an infinite
  /// logit, 1 for sample()'s choice. `out` becomes as long as the logits. Returns false, with zeros, when no
  /// logit is above minus infinity, and when the structure or the filter throws. As for best(), tokens of the
  /// history beyond the logits are ignored.
  bool distribution(std::span<const float> logits, std::span<const int32_t> history, std::vector<float>& out);

  /// The logits with the logit bias, and minus infinity for tokens that the filter or the structure forbids:
  /// what remains of the vocabulary before penalty, temperature and noise. Refers to the logits given or to
  /// the sampler, until its next call.
  std::span<const float> constrained(std::span<const float> logits, std::span<const int32_t> history);

  /// The most guesses that best() can give.
  static constexpr size_t kMostGuesses = 8;

  /// The tokens, at most `most`, of the only text that the structure leaves to follow the history; none where
  /// there are several, without a structure, and where the structure is too ambiguous on the way.
  ForcedTokens forced(std::span<const int32_t> history, size_t most);

  /// Whether a structure decides which tokens may come.
  bool structured() const { return constraint_.structure != nullptr; }

  /// Whether the sequence ends after this token, so that nothing needs to be drafted behind it.
  bool ends(int32_t token) const {
    return std::find(constraint_.ends.begin(), constraint_.ends.end(), token) != constraint_.ends.end();
  }

  const SamplingOptions& options() const { return options_; }

 private:
  /// What to do about a token of the history that the logits have no place for.
  enum class Unknown { kFail, kIgnore };
  std::span<const float> penalized(std::span<const float> logits, std::span<const int32_t> history,
                                   Unknown unknown);
  /// The same for a draft; nothing when the structure or the filter throws.
  std::optional<std::span<const float>> penalized_guess(std::span<const float> logits,
                                                        std::span<const int32_t> history);
  void subtract_penalties(std::span<const int32_t> generated);
  size_t best_greedily(std::span<const float> logits, float largest, std::span<Guess> out) const;

  SamplingOptions options_;
  Constraint constraint_;
  std::vector<float> constrained_;
  std::vector<uint8_t> allowed_;
  std::span<const int32_t> generated(std::span<const int32_t> history) const {
    return history.subspan(std::min(history.size(), constraint_.first_generated));
  }
  std::vector<float> penalized_;
  std::vector<int32_t> occurrences_;  // by token; all 0 between calls
  std::vector<Candidate> candidates_;
  std::vector<LogitBlock> blocks_;
};

}  // namespace verbatim
