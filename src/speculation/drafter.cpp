#include "speculation/drafter.h"

#include <algorithm>

namespace verbatim {

void Draft::clear() {
  nodes.clear();
  distributions.clear();
  unsure = false;
}

float Draft::path_of(int32_t parent, int32_t rank, float confidence) const {
  const float before = parent == DraftNode::kRoot ? 1.0f : nodes[static_cast<size_t>(parent)].path;
  return before * (calibration == nullptr ? confidence : calibration->kept(rank, confidence));
}

int32_t Draft::add(int32_t token, int32_t parent, float confidence, int32_t rank) {
  const int32_t depth = parent == DraftNode::kRoot ? 0 : nodes[static_cast<size_t>(parent)].depth + 1;
  nodes.push_back({token, parent, depth, rank, confidence, path_of(parent, rank, confidence)});
  return static_cast<int32_t>(nodes.size()) - 1;
}

int32_t Draft::child(int32_t parent, int32_t token) const {
  for (size_t i = static_cast<size_t>(parent + 1); i < nodes.size(); ++i) {
    if (nodes[i].parent == parent && nodes[i].token == token) return static_cast<int32_t>(i);
  }
  return DraftNode::kRoot;
}

DraftLimits limits_of(const DraftLevel& level) {
  DraftLimits limits;
  limits.length = level.length;
  limits.threshold = level.threshold;
  limits.breadth = level.breadth;
  limits.nodes = std::max(level.nodes, level.length);
  return limits;
}

}  // namespace verbatim
