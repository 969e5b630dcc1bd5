#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sampling/sampler.h"
#include "speculation/sequence.h"

namespace verbatim {

/// A drafted token: a node of a tree whose root is the sequence's last token.
struct DraftNode {
  static constexpr int32_t kRoot = -1;

  int32_t token;
  int32_t parent;    ///< the index of the node before it, which comes earlier in the list; or kRoot
  int32_t depth;     ///< 0 for what may follow the sequence at once
  float confidence;  ///< how likely verification keeps it once it kept its parent, 0 to 1
};

/// What a drafter proposes. Children of one parent differ in their token; the first of them is the likeliest.
struct Draft {
  std::vector<DraftNode> nodes;
  bool unsure = false;  ///< it ended because the drafter was not sure enough, not because of its length

  void clear() {
    nodes.clear();
    unsure = false;
  }
  int64_t size() const { return static_cast<int64_t>(nodes.size()); }
  /// Adds a node and returns its index.
  int32_t add(int32_t token, int32_t parent, float confidence) {
    const int32_t depth = parent == DraftNode::kRoot ? 0 : nodes[static_cast<size_t>(parent)].depth + 1;
    nodes.push_back({token, parent, depth, confidence});
    return static_cast<int32_t>(nodes.size()) - 1;
  }
};

/// How far a draft may go.
struct DraftLimits {
  int32_t length = 8;      ///< at most so many tokens deep
  float threshold = 0.0f;  ///< nothing after a token of less confidence
  int32_t breadth = 1;     ///< at most so many children of a node
  int32_t nodes = 8;       ///< at most so many nodes
  /// A node joins the draft only if it and all before it are kept with at least this probability.
  float path_threshold = 0.0f;
};

/// Something that proposes tokens (design §5).
class Drafter {
 public:
  virtual ~Drafter() = default;

  /// Adds to the empty `draft` what may follow the sequence's tokens, as far as `limits` and `room` (tokens
  /// that the sequence may still grow by, ≥ 0) allow. A guess for position p is best made with
  /// sampler's noise for p: then it is what verification will choose. May write into the cache beyond the
  /// verified length; leaves sequence.tokens as they were.
  virtual void propose(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t room,
                       Draft& draft) = 0;

  /// Hears the sequence after a step, when all its tokens are verified.
  virtual void observe(const Sequence& sequence) = 0;
};

}  // namespace verbatim
