#include "structure/token_trie.h"

#include <algorithm>

namespace verbatim {

TokenTrie::TokenTrie(std::vector<std::pair<std::string, int32_t>> tokens) {
  std::sort(tokens.begin(), tokens.end());
  std::vector<size_t> path;  // the nodes of the beginnings of the last text
  std::string last;
  for (const auto& [text, token] : tokens) {
    const auto common = static_cast<size_t>(
        std::mismatch(text.begin(), text.end(), last.begin(), last.end()).first - text.begin());
    for (; path.size() > common; path.pop_back()) {
      nodes_[path.back()].skip = static_cast<int32_t>(nodes_.size());
    }
    for (size_t i = common; i < text.size(); ++i) {
      path.push_back(nodes_.size());
      nodes_.push_back({.byte = static_cast<uint8_t>(text[i]),
                        .depth = static_cast<int32_t>(i),
                        .first_token = static_cast<int32_t>(tokens_.size())});
      deepest_ = std::max(deepest_, static_cast<int32_t>(i));
    }
    tokens_.push_back(token);
    last = text;
  }
  for (const size_t node : path) nodes_[node].skip = static_cast<int32_t>(nodes_.size());
  nodes_.push_back({.first_token = static_cast<int32_t>(tokens_.size())});
}

}  // namespace verbatim
