#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "structure/automaton.h"
#include "structure/structure_vocabulary.h"

namespace verbatim {

/// The tokens that may come next at some place of a structured text.
struct TokenMask {
  static constexpr int32_t kNone = -1;

  TokenBits bits;         ///< those that continue the text; tokens that end the sequence are not among them
  bool complete = false;  ///< whether the text may end there
  /// Where one text alone can follow: the first token that the tokenizer gives for it, or kNone. Where the
  /// text has a special token alone next, that one.
  int32_t first = kNone;
  /// Whether `first` is the only token that may come. It is not where `first` is the last token before other
  /// texts can follow: with those the tokenizer may have another token.
  bool only = false;
};

/// The tokens of a text that is the only one to follow.
struct ForcedTokens {
  std::vector<int32_t> tokens;
  size_t certain =
      0;  ///< how many of them, from the first on, are the only tokens allowed; the rest are guesses
};

/// The states after each of some tokens. Belongs to one CompiledStructure, which may forget what it means and
/// then finds the states anew.
struct StructureHistory {
  static constexpr Automaton::State kForgotten = -1;  ///< a state whose meaning is lost
  uint64_t epoch = 0;
  std::vector<int32_t> tokens;
  std::vector<Automaton::State> states;  ///< one more than tokens: the first is that of the empty text
};

/// A structure made ready for a vocabulary: which tokens may follow which. What it finds out it remembers,
/// within limits, for all that use it. All members may be called from several threads.
class CompiledStructure {
 public:
  /// Throws what make_grammar() throws.
  CompiledStructure(const Structure::Node& node, std::shared_ptr<const StructureVocabulary> vocabulary);

  /// The tokens that may follow `tokens`, which come after one another from the beginning of the text. `ends`
  /// are tokens that end the sequence. `history` is of an earlier call with the same `ends`, or new; the
  /// longer the tokens that both have in common, the less is to do. Throws Error(kBadInput) when the
  /// structure turns out to be too ambiguous.
  std::shared_ptr<const TokenMask> allowed(std::span<const int32_t> tokens, std::span<const int32_t> ends,
                                           StructureHistory& history);

  /// The tokens, at most `most`, of the only text that can follow; none where there are several. The last of
  /// them may be the first of `ends`. Throws what allowed() throws.
  ForcedTokens forced(std::span<const int32_t> tokens, std::span<const int32_t> ends, size_t most,
                      StructureHistory& history);

  const StructureVocabulary& vocabulary() const { return *vocabulary_; }
  /// The number of masks that were computed, not remembered.
  int64_t computed_masks() const { return computed_masks_; }

 private:
  Automaton::State follow(std::span<const int32_t> tokens, std::span<const int32_t> ends,
                          StructureHistory& history);
  void forget(StructureHistory& history);
  Automaton::State after(Automaton::State state, int32_t token, std::span<const int32_t> ends);
  std::shared_ptr<const TokenMask> mask_of(Automaton::State state);
  std::shared_ptr<const TokenMask> make_mask(Automaton::State state);
  void find_first(Automaton::State state, TokenMask& mask);
  const ClassTokens& class_tokens(int32_t characters);

  std::shared_ptr<const StructureVocabulary> vocabulary_;
  std::atomic<int64_t> computed_masks_ = 0;
  std::mutex mutex_;
  Automaton automaton_;
  uint64_t epoch_ = 1;
  std::unordered_map<Automaton::State, std::shared_ptr<const TokenMask>> masks_;
  std::vector<std::shared_ptr<const ClassTokens>> classes_;  // by class of the grammar; null: not needed yet
};

/// The structures that were made ready for a model lately.
class StructureCache {
 public:
  StructureCache(std::shared_ptr<const Tokenizer> tokenizer, int32_t vocabulary_size)
      : tokenizer_(std::move(tokenizer)), vocabulary_size_(vocabulary_size) {}

  /// Makes a structure ready, or finds the one that was. Throws what make_grammar() throws.
  std::shared_ptr<CompiledStructure> compiled(const Structure& structure);

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  int32_t vocabulary_size_;
  std::mutex vocabulary_mutex_;
  std::shared_ptr<const StructureVocabulary> vocabulary_;  // null: no structure was needed yet
  std::mutex mutex_;
  std::vector<std::pair<std::string, std::shared_ptr<CompiledStructure>>> known_;  // the latest last
};

}  // namespace verbatim
