#pragma once

#include <cstdint>
#include <vector>

#include "kv/dense.h"
#include "kv/sparse.h"

namespace verbatim {

/// The view of SnapKV, for drafts: they see those positions of the prompt to which its end attends most, and
/// all positions from that end on. The last 32 positions of the prompt are the observation window. For each
/// layer and key-value head their queries vote: attention probabilities are summed over the window and over
/// the query heads that share the head, and each position takes the largest sum among itself and its three
/// neighbours on either side (max pooling with kernel 7). The best positions are copied, in order, so that a
/// draft reads them in one piece; they keep their rotary angles. The cache itself is unchanged, and
/// verification reads all of it.
///
/// When a new prompt is appended, as in a chat, the whole text is voted on anew. Where the budget holds no
/// more than the window, drafts see all positions.
class SnapKvView : public SparseCache {
 public:
  static constexpr int64_t kWindow = 32;
  static constexpr int64_t kPooling = 7;

  /// Makes a view of sequences that grow to `capacity` tokens in a DenseCache of this shape and type of
  /// element. `budget` is the share of the prompt, its window included, that drafts see. Throws
  /// Error(kMachine) if the memory for copied positions cannot be reserved.
  SnapKvView(const CacheShape& shape, int64_t capacity, Element element, float budget);

  /// The number of positions that are copied, of a prompt of `prompt` tokens.
  static int64_t selected_count(int64_t prompt, float budget);

  SparseView view(int64_t layer, int64_t head, int64_t position) const override;
  /// Does what SparseCache::follow() says. `cache` must store panels with the view's type of element, and
  /// must not move until the queries have been observed.
  int64_t follow(std::span<const int32_t> tokens, const KvCache& cache) override;
  void observe(int64_t layer, int64_t head, const AttentionBlock& block, AttentionScratch& scratch) override;

 private:
  /// The buffers of one head's vote. Each head has its own, because heads vote on different threads.
  struct Vote {
    std::vector<float> shares;   // [positions before the window]: the attention that each position got
    std::vector<float> pooled;   // [positions before the window]: `shares` after max pooling
    std::vector<int32_t> order;  // the positions, the chosen ones first
  };

  float budget_;
  DenseCache copy_;
  std::vector<Vote> votes_;    // [kv head]
  std::vector<int32_t> held_;  // the tokens of the last follow()
  const KvCache* from_ = nullptr;
  int64_t first_ = 0;  ///< the first position of the window
  int64_t count_ = 0;  ///< the number of copied positions; 0: drafts see all positions
};

}  // namespace verbatim
