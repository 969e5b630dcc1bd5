#pragma once

#include <cstdint>
#include <vector>

#include "text/tokenizer.h"

namespace verbatim {

/// A merge: the token that two neighbouring tokens may become. Merges of lower rank come first.
struct Merge {
  int32_t rank = 0;
  Token result = -1;
};

/// The pairs of tokens that byte-pair encoding merges: a hash table made for fast look-up.
class MergeTable {
 public:
  /// Makes room for `count` pairs.
  void reserve(size_t count);
  /// Adds the merge of a pair. It replaces an earlier one of the same pair.
  void add(Token left, Token right, Merge merge);
  /// The merge of a pair; nullptr if the pair does not merge.
  const Merge* find(Token left, Token right) const;

 private:
  struct Slot {
    uint64_t key = 0;  // both tokens; 0 is an empty slot, see key_of
    Merge merge;
  };
  static uint64_t key_of(Token left, Token right);
  size_t home(uint64_t key) const;

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

/// Merges the tokens of one word in place: repeatedly the pair of the lowest rank, the leftmost of equals,
/// until no pair merges. Takes O(n log n) time for n tokens. A PairMerger keeps its buffers for the next
/// word, and may be used by one thread at a time.
class PairMerger {
 public:
  /// Positions in a word are kept in 32 bits.
  static constexpr size_t kMost = size_t{1} << 30;

  /// `most` is the largest number of tokens of a word, at most kMost.
  explicit PairMerger(const MergeTable& table, size_t most = kMost) : table_(&table), most_(most) {}
  /// Merges the word that is tokens[begin] to the end of `tokens`. Throws Error(kBadInput) if it has too
  /// many.
  void merge(std::vector<Token>& tokens, size_t begin);

 private:
  struct Candidate {
    int32_t rank;
    uint32_t position;
    Token left;
    Token right;
  };
  static bool later(const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  }

  void merge_short(std::vector<Token>& tokens, size_t begin);
  void merge_long(std::vector<Token>& tokens, size_t begin);

  const MergeTable* table_;
  size_t most_;
  std::vector<Candidate> heap_;
  std::vector<uint32_t> next_;
  std::vector<uint32_t> previous_;
};

}  // namespace verbatim
