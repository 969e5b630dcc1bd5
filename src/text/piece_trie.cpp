#include "text/piece_trie.h"

#include <algorithm>

#include "base/error.h"

namespace verbatim {

namespace {

// Vocabularies of a quarter of a million tokens have about one million nodes.
constexpr size_t kMostNodes = size_t{1} << 24;

}  // namespace

// The byte is stored plus one, so that no edge has the key 0.
uint64_t PieceTrie::key_of(uint32_t node, char byte) {
  return static_cast<uint64_t>(node) << 9 | (static_cast<uint64_t>(static_cast<unsigned char>(byte)) + 1);
}

/// The slot of a key, or the empty slot where it belongs.
size_t PieceTrie::slot_of(uint64_t key) const {
  const uint64_t mixed = key * 0x9E3779B97F4A7C15u;
  size_t slot = static_cast<size_t>(mixed >> 24) & (edges_.size() - 1);
  while (edges_[slot].key != 0 && edges_[slot].key != key) slot = (slot + 1) & (edges_.size() - 1);
  return slot;
}

void PieceTrie::grow() {
  std::vector<Edge> old(std::max<size_t>(edges_.size() * 2, 64));
  old.swap(edges_);
  for (const Edge& edge : old) {
    if (edge.key != 0) edges_[slot_of(edge.key)] = edge;
  }
}

void PieceTrie::add(std::string_view text, Token token, const std::string& where) {
  if (text.empty()) return;
  if (text.size() > kLongestPiece) {
    bad_input("{}: token {} has {} bytes; the limit is {}", where, token, text.size(), kLongestPiece);
  }
  uint32_t node = kRoot;
  for (const char byte : text) {
    if (tokens_.size() * 2 >= edges_.size()) grow();
    Edge& edge = edges_[slot_of(key_of(node, byte))];
    if (edge.key == 0) {
      if (tokens_.size() >= kMostNodes) bad_input("{}: the texts of the vocabulary are too long", where);
      edge = {key_of(node, byte), static_cast<uint32_t>(tokens_.size())};
      tokens_.push_back(-1);
    }
    node = edge.child;
  }
  tokens_[node] = token;
}

uint32_t PieceTrie::child(uint32_t node, char byte) const {
  if (edges_.empty()) return kNone;
  const Edge& edge = edges_[slot_of(key_of(node, byte))];
  return edge.key != 0 ? edge.child : kNone;
}

}  // namespace verbatim
