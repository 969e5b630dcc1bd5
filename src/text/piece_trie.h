#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace verbatim {

/// The texts of tokens as a tree over their bytes, in which all that begin at a place of a text are found in
/// one walk: a hash table of edges made for fast look-up.
class PieceTrie {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNone = UINT32_MAX;

  PieceTrie() : tokens_(1, -1) {}
  /// Adds the text of a token, unless it is empty. A later token replaces an earlier one of the same text.
  /// Throws Error(kBadInput), naming `where`, if the texts are absurdly long.
  void add(std::string_view text, Token token, const std::string& where);
  /// The node behind `node` and a byte; kNone if no text goes on in that way.
  uint32_t child(uint32_t node, char byte) const;
  /// The token whose text ends at a node; -1 if there is none.
  Token token(uint32_t node) const { return tokens_[node]; }
  /// Calls visit(token, end) for each token whose text stands at a place of a text, the shorter before the
  /// longer; `end` is where it ends.
  template <typename Visit>
  void each_at(std::string_view text, size_t begin, Visit&& visit) const {
    uint32_t node = kRoot;
    for (size_t end = begin; end < text.size();) {
      node = child(node, text[end++]);
      if (node == kNone) return;
      if (token(node) >= 0) visit(token(node), end);
    }
  }

 private:
  struct Edge {
    uint64_t key = 0;  // node and byte, see key_of; 0 is an empty slot
    uint32_t child = 0;
  };
  static uint64_t key_of(uint32_t node, char byte);
  size_t slot_of(uint64_t key) const;
  void grow();

  std::vector<Edge> edges_;
  std::vector<Token> tokens_;  // by node
};

/// The most bytes that the text of a token may have where texts are searched for piece by piece.
inline constexpr size_t kLongestPiece = 1024;

}  // namespace verbatim
