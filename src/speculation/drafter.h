#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/sampler.h"
#include "speculation/calibration.h"
#include "speculation/sequence.h"
#include "verbatim/generate.h"

namespace verbatim {

/// A drafted token: a node of a tree whose root is the sequence's last token.
struct DraftNode {
  static constexpr int32_t kRoot = -1;

  int32_t token;
  int32_t parent;    ///< the index of the node before it, which comes earlier in the list; or kRoot
  int32_t depth;     ///< 0 for what may follow the sequence at once
  int32_t rank;      ///< 0 for the first child of its parent
  float confidence;  ///< how sure the drafter is of it once its parent is kept, 0 to 1
  float kept;        ///< the same as the calibration has it
  float path;        ///< how likely verification keeps it: the product of `kept` from the root on
};

/// What a drafter proposes. Children of one parent differ in their token; the first of them is the likeliest.
struct Draft {
  std::vector<DraftNode> nodes;
  bool unsure = false;  ///< it ended because the drafter was not sure enough, not because of its length
  /// What confidence has been worth; null takes it at its word.
  const Calibration* calibration = nullptr;
  /// Whether the drafter is to add the distribution that each node's token was drawn from, node by node and
  /// of one size, to `distributions`. Without one a token counts as certain.
  bool want_distributions = false;
  std::vector<std::vector<float>> distributions;

  void clear();
  int64_t size() const { return static_cast<int64_t>(nodes.size()); }
  /// Adds what another draft of the same sequence has and this one lacks. Where both have a node, the surer
  /// one counts; the children of a node share at most 1.
  void merge(const Draft& other);
  /// Puts the nodes in the order of decreasing path, parents before their children.
  void order_by_path();
  /// The path probability of a child of `parent`.
  float path_of(int32_t parent, int32_t rank, float confidence) const;
  /// Adds a node and returns its index.
  int32_t add(int32_t token, int32_t parent, float confidence, int32_t rank = 0);
  /// The child of `parent` with this token, or kRoot if there is none.
  int32_t child(int32_t parent, int32_t token) const;

 private:
  float path_before(int32_t parent) const;
  float kept_of(int32_t rank, float confidence) const;
};

/// How far a draft may go.
struct DraftLimits {
  int32_t length = 8;        ///< at most so many tokens deep
  float threshold = 0.0f;    ///< nothing after a token of less confidence,
  bool drop_unsure = false;  ///< and not that token either (thesis §4.3: the model above gives it)
  /// Whether a pass that others share may be declined where it does not pay. Not where drafts decide what is
  /// said.
  enum class Decline { kNever, kWhileOthersWait, kAlways };
  Decline decline = Decline::kNever;
  int32_t breadth = 1;  ///< at most so many children of a node
  int32_t nodes = 8;    ///< at most so many nodes
  /// Nothing is evaluated after a node that is kept with less probability than this,
  float path_threshold = 0.0f;
  /// and no sibling of the likeliest child joins that is kept with less probability than this.
  float leaf_threshold = 0.0f;
};

/// The stop rule of a recipe's level.
DraftLimits limits_of(const DraftLevel& level);

/// What the confidence of a recipe's level is worth until something is known.
Calibration initial_calibration(const DraftLevel& level);
/// Tells a calibration what became of the nodes whose parents came true.
void update_calibration(const Draft& draft, std::span<const int32_t> came, Calibration& calibration);

/// Something that proposes tokens.
class Drafter {
 public:
  virtual ~Drafter() = default;

  /// Adds to the empty `draft` what may follow the sequence's tokens, as far as `limits` and `room` (tokens
  /// that the sequence may still grow by, ≥ 0) allow. A guess for position p is best made with the sampler's
  /// noise for p: then it is what verification will choose. May write into the cache beyond the verified
  /// length; leaves sequence.tokens as they were.
  virtual void propose(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t room,
                       Draft& draft) = 0;

  /// Hears the sequence after a step, when all its tokens are verified.
  virtual void observe(const Sequence& sequence) = 0;

  /// What it did since it was made. `accepted` is counted by what verifies its drafts.
  LevelStats stats;
};

}  // namespace verbatim
