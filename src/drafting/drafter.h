#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "drafting/calibration.h"
#include "drafting/sequence.h"
#include "sampling/sampler.h"
#include "verbatim/generate.h"

namespace verbatim {

/// A drafted token: a node of a tree whose root is the sequence's last token.
struct DraftNode {
  static constexpr int32_t kRoot = -1;

  int32_t token;
  int32_t parent;     ///< the index of the parent node, which comes earlier in the list, or kRoot
  int32_t depth;      ///< the number of nodes between it and the root: 0 for children of the root
  int32_t rank;       ///< the place among the children of its parent: 0 for the first
  float confidence;   ///< how sure the drafter is of this token, given that its parent is kept, 0 to 1
  float kept;         ///< the calibrated probability that it is kept, given that its parent is kept
  float path;         ///< the probability that it is kept: the product of `kept` from the root to it
  int32_t level = 0;  ///< the level of the recipe that had the token first
};

/// The tokens that a drafter proposes at one step: a tree, as a list of nodes. Children of one parent have
/// different tokens, and the first child is the likeliest.
struct Draft {
  std::vector<DraftNode> nodes;
  bool unsure = false;  ///< drafting ended because the drafter was not sure enough, not because of a length
  /// Turns the confidences of nodes into probabilities; without one (null) a confidence counts as a
  /// probability.
  const Calibration* calibration = nullptr;
  /// Whether the drafter must fill `distributions`.
  bool want_distributions = false;
  /// For each node the distribution that its token was drawn from, all of one size. The token of a node
  /// without one, or with an empty one, counts as certain.
  std::vector<std::vector<float>> distributions;

  void clear();
  int64_t size() const { return static_cast<int64_t>(nodes.size()); }
  /// Adds the nodes of another draft of the same sequence that this one lacks. Where both have a node, the
  /// higher confidence counts. The `kept` of the children of a node are scaled down where they would add up
  /// to more than 1.
  void merge(const Draft& other);
  /// Sorts the nodes by decreasing path probability, with parents before their children.
  void order_by_path();
  /// The path probability of a child of `parent`.
  float path_of(int32_t parent, int32_t rank, float confidence) const;
  /// Adds a node that a level of the recipe proposes, and returns its index.
  int32_t add(int32_t token, int32_t parent, float confidence, int32_t rank = 0, int32_t level = 0);
  /// Adds the nodes of another draft, of the sequence that ends with node `at`, with the probabilities that
  /// they have there.
  void graft(const Draft& other, int32_t at);
  /// Puts a chain of tokens before all nodes: the children of the root become children of the last of them. A
  /// level proposes them, and they are certain.
  void put_before(std::span<const int32_t> tokens, int32_t level);
  /// The child of `parent` with this token, or kRoot if there is none.
  int32_t child(int32_t parent, int32_t token) const;
  /// The first child of `parent`, or kRoot if there is none.
  int32_t first_child(int32_t parent) const;

 private:
  float path_before(int32_t parent) const;
  float kept_of(int32_t rank, float confidence) const;
};

/// The stop rule: the limits of a draft.
struct DraftLimits {
  int32_t length = 8;      ///< the largest depth of the draft, in tokens
  float threshold = 0.0f;  ///< a token of less confidence than this is the last one
  bool drop_unsure =
      false;  ///< a token below `threshold` is left out, too (thesis §4.3: the model above gives it)
  /// Whether a shared pass that drafts may be declined because it does not pay. Never where the drafts decide
  /// the text.
  bool may_decline = false;
  /// Whether the model itself verifies the inner draft where the pass over it is declined.
  bool keeps_inner = false;
  int32_t breadth = 1;  ///< the most children of a node
  int32_t nodes = 8;    ///< the most nodes of the draft
  /// The keep threshold of drafting on: the drafter does not evaluate a node whose path probability is below
  /// it.
  float path_threshold = 0.0f;
  /// The keep threshold of siblings: a node that is not a first child joins only if its path probability
  /// reaches it.
  float leaf_threshold = 0.0f;
};

/// The stop rule of a recipe's level.
DraftLimits limits_of(const DraftLevel& level);

/// The calibration that a recipe's level begins with, by its kind.
Calibration initial_calibration(const DraftLevel& level);
/// Takes the outcome of a draft into a calibration: `came` are the tokens that were appended, and every node
/// whose parent is among them is an observation. The first `certain` nodes are left out: a chain of tokens
/// that nothing else could have replaced.
void update_calibration(const Draft& draft, std::span<const int32_t> came, Calibration& calibration,
                        int64_t certain = 0);

/// Proposes tokens: the interface of everything that drafts.
class Drafter {
 public:
  virtual ~Drafter() = default;

  /// Adds tokens that may follow the sequence to the empty `draft`, within `limits` and `room`, the number of
  /// tokens (≥ 0) by which the sequence may still grow. A guess for position p is best made with the
  /// sampler's noise for p, because verification chooses with the same noise. The drafter may write into the
  /// cache behind the verified positions, and leaves sequence.tokens as they were.
  virtual void propose(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t room,
                       Draft& draft) = 0;

  /// Shows the sequence to the drafter after a step, when all its tokens are verified.
  virtual void observe(const Sequence& sequence) = 0;

  /// Statistics of this drafter. The verifier of its drafts counts `accepted`, the drafter all else.
  LevelStats stats;
  /// The level of the recipe that this drafter drafts for.
  int32_t level = 0;
};

}  // namespace verbatim
