#include "drafting/drafter.h"

#include <algorithm>
#include <numeric>

namespace verbatim {

namespace {

/// The initial factor on the doubt (Calibration) of a drafter that reads all layers and experts of the
/// model's own weights. Where such a drafter is unsure, the model is unsure of the same tokens, and with the
/// same random numbers both choose alike. Of its tokens of confidence 1/3, nine of ten were kept; of those
/// above 1/2, nearly all.
constexpr float kSelfDoubt = 0.3f;
/// The initial factor on the doubt of n-grams. Their confidence is how often such guesses were right, which
/// they have not measured at first; outside of code their guesses are right less often than they assume.
constexpr float kNgramDoubt = 1.4f;

}  // namespace

void Draft::clear() {
  nodes.clear();
  distributions.clear();
  unsure = false;
}

float Draft::path_before(int32_t parent) const {
  return parent == DraftNode::kRoot ? 1.0f : nodes[static_cast<size_t>(parent)].path;
}

float Draft::kept_of(int32_t rank, float confidence) const {
  return calibration == nullptr ? confidence : calibration->kept(rank, confidence);
}

float Draft::path_of(int32_t parent, int32_t rank, float confidence) const {
  return path_before(parent) * kept_of(rank, confidence);
}

int32_t Draft::add(int32_t token, int32_t parent, float confidence, int32_t rank, int32_t level) {
  const int32_t depth = parent == DraftNode::kRoot ? 0 : nodes[static_cast<size_t>(parent)].depth + 1;
  const float kept = kept_of(rank, confidence);
  nodes.push_back({token, parent, depth, rank, confidence, kept, path_before(parent) * kept, level});
  return static_cast<int32_t>(nodes.size()) - 1;
}

void Draft::merge(const Draft& other) {
  std::vector<int32_t> place(other.nodes.size());
  for (size_t i = 0; i < other.nodes.size(); ++i) {
    DraftNode node = other.nodes[i];
    if (node.parent != DraftNode::kRoot) node.parent = place[static_cast<size_t>(node.parent)];
    place[i] = child(node.parent, node.token);
    if (place[i] == DraftNode::kRoot) {
      place[i] = static_cast<int32_t>(nodes.size());
      nodes.push_back(node);
    } else {
      float& kept = nodes[static_cast<size_t>(place[i])].kept;
      kept = std::max(kept, node.kept);
    }
  }
  // After merging two drafts, the probabilities of a node's children may add up to more than 1.
  std::vector<float> promised(nodes.size() + 1, 0.0f);
  for (const DraftNode& node : nodes) promised[static_cast<size_t>(node.parent + 1)] += node.kept;
  for (DraftNode& node : nodes) {
    node.kept /= std::max(1.0f, promised[static_cast<size_t>(node.parent + 1)]);
    node.path = path_before(node.parent) * node.kept;
  }
}

void Draft::order_by_path() {
  std::vector<int32_t> order(nodes.size());
  std::iota(order.begin(), order.end(), 0);
  // No node has a larger path than its parent, and among equals the parent comes first.
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return nodes[static_cast<size_t>(a)].path > nodes[static_cast<size_t>(b)].path;
  });
  std::vector<int32_t> new_place(nodes.size());
  std::vector<DraftNode> sorted;
  for (const int32_t old : order) {
    new_place[static_cast<size_t>(old)] = static_cast<int32_t>(sorted.size());
    DraftNode node = nodes[static_cast<size_t>(old)];
    if (node.parent != DraftNode::kRoot) node.parent = new_place[static_cast<size_t>(node.parent)];
    sorted.push_back(node);
  }
  nodes = std::move(sorted);
}

void Draft::graft(const Draft& other, int32_t at) {
  const auto before = static_cast<int32_t>(nodes.size());
  const int32_t depth = at == DraftNode::kRoot ? 0 : nodes[static_cast<size_t>(at)].depth + 1;
  for (DraftNode node : other.nodes) {
    node.parent = node.parent == DraftNode::kRoot ? at : node.parent + before;
    node.depth += depth;
    node.path = path_before(node.parent) * node.kept;
    nodes.push_back(node);
  }
}

void Draft::put_before(std::span<const int32_t> tokens, int32_t level) {
  const auto count = static_cast<int32_t>(tokens.size());
  for (DraftNode& node : nodes) {
    node.parent += count;  // kRoot becomes the last of the chain
    node.depth += count;
  }
  std::vector<DraftNode> chain;
  for (int32_t i = 0; i < count; ++i)
    chain.push_back({tokens[static_cast<size_t>(i)], i - 1, i, 0, 1.0f, 1.0f, 1.0f, level});
  nodes.insert(nodes.begin(), chain.begin(), chain.end());
  if (!distributions.empty()) distributions.insert(distributions.begin(), tokens.size(), {});
}

int32_t Draft::child(int32_t parent, int32_t token) const {
  for (size_t i = static_cast<size_t>(parent + 1); i < nodes.size(); ++i) {
    if (nodes[i].parent == parent && nodes[i].token == token) return static_cast<int32_t>(i);
  }
  return DraftNode::kRoot;
}

int32_t Draft::first_child(int32_t parent) const {
  for (size_t i = static_cast<size_t>(parent + 1); i < nodes.size(); ++i) {
    if (nodes[i].parent == parent) return static_cast<int32_t>(i);
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

Calibration initial_calibration(const DraftLevel& level) {
  if (level.kind == DraftLevel::Kind::kNgram) return Calibration(kNgramDoubt);
  const bool whole = level.kind == DraftLevel::Kind::kSelf && level.layers == 0 && level.experts == 0 &&
                     level.vocabulary == 0 && level.cache == "full";
  return whole ? Calibration(kSelfDoubt) : Calibration();
}

void update_calibration(const Draft& draft, std::span<const int32_t> came, Calibration& calibration,
                        int64_t certain) {
  int32_t at = DraftNode::kRoot;
  const auto first = static_cast<size_t>(std::min<int64_t>(certain, draft.size()));
  for (const int32_t token : came) {
    for (const DraftNode& node : std::span(draft.nodes).subspan(first)) {
      if (node.parent == at) calibration.observe(node.rank, node.confidence, node.token == token);
    }
    at = draft.child(at, token);
    if (at == DraftNode::kRoot) return;
  }
}

}  // namespace verbatim
