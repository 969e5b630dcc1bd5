#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace verbatim {

/// One bit for each token of a vocabulary.
using TokenBits = std::vector<uint64_t>;

inline void set_bit(TokenBits& bits, int32_t token) {
  bits[static_cast<size_t>(token) / 64] |= uint64_t{1} << (static_cast<size_t>(token) % 64);
}
inline bool test_bit(const TokenBits& bits, int32_t token) {
  return (bits[static_cast<size_t>(token) / 64] >> (static_cast<size_t>(token) % 64) & 1) != 0;
}

/// The texts of tokens, with common beginnings stored once: a tree with a node for every beginning.
class TokenTrie {
 public:
  TokenTrie() = default;
  /// The texts, none of which is empty, with their tokens. Several tokens may have the same text.
  explicit TokenTrie(std::vector<std::pair<std::string, int32_t>> tokens);

  /// A node, in the order in which they are visited: parents first, children by their byte.
  struct Node {
    uint8_t byte = 0;         ///< the last byte of the beginning
    int32_t depth = 0;        ///< its length less one
    int32_t skip = 0;         ///< the node to go on with when nothing begins like this one
    int32_t first_token = 0;  ///< where the tokens with exactly this text begin; they end at the next node's
  };

  /// Sets the bits of the tokens whose texts `after` can be led through from `start`. `after(state, byte)`
  /// gives the next state; a state of 0 or less is a dead end.
  template <typename After>
  void visit(int32_t start, After after, TokenBits& bits) const {
    std::vector<int32_t> states(static_cast<size_t>(deepest_) + 2);
    states[0] = start;
    const auto count = static_cast<int32_t>(nodes_.size()) - 1;
    for (int32_t i = 0; i < count;) {
      const Node& node = nodes_[static_cast<size_t>(i)];
      const auto depth = static_cast<size_t>(node.depth);
      const int32_t state = after(states[depth], node.byte);
      if (state <= 0) {
        i = node.skip;
        continue;
      }
      states[depth + 1] = state;
      ++i;
      const int32_t end = nodes_[static_cast<size_t>(i)].first_token;
      for (int32_t t = node.first_token; t < end; ++t) set_bit(bits, tokens_[static_cast<size_t>(t)]);
    }
  }

 private:
  std::vector<Node> nodes_;  // and one more behind the last
  std::vector<int32_t> tokens_;
  int32_t deepest_ = 0;
};

}  // namespace verbatim
