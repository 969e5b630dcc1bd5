#pragma once

#include <cstdint>
#include <vector>

#include "kv/dense.h"
#include "kv/sparse.h"

namespace verbatim {

/// SnapKV's view (Li et al. 2024), as a draft's: of the prompt, the positions that its end attends to most,
/// and everything from that end on. For each layer and key-value head the queries of the last 32 positions,
/// the observation window, vote: their attention probabilities are summed over the window and over the query
/// heads that share the head, and each position takes the largest sum among itself and the three on either
/// side (max pooling with kernel 7). The best positions are copied, in order, so that a draft reads them in
/// one piece; they keep their rotary angles. The cache below stays whole: verification reads all of it.
///
/// A text that has grown by a new prompt (a chat) is voted on anew, all of it. One that is too short for the
/// budget to hold more than the window is seen whole.
class SnapKvView : public SparseCache {
 public:
  static constexpr int64_t kWindow = 32;
  static constexpr int64_t kPooling = 7;

  /// For sequences of a DenseCache of this shape with elements of this kind, which grow to `capacity` tokens.
  /// `budget`: the share of the prompt, its window included, that is kept. Throws Error(kMachine) when the
  /// copy's memory cannot be reserved.
  SnapKvView(const CacheShape& shape, int64_t capacity, Element element, float budget);

  /// How many positions are copied of a prompt of so many tokens.
  static int64_t selected_count(int64_t prompt, float budget);

  SparseView view(int64_t layer, int64_t head, int64_t position) const override;
  /// `cache` stores panels, of the kind of element that the view has, and stays where it is until the queries
  /// have been observed.
  int64_t follow(std::span<const int32_t> tokens, const KvCache& cache) override;
  void observe(int64_t layer, int64_t head, const AttentionBlock& block, AttentionScratch& scratch) override;

 private:
  /// What one head's vote needs: by head, because heads vote on different threads.
  struct Vote {
    std::vector<float> shares;   // [positions before the window]: of the attention
    std::vector<float> pooled;   // likewise
    std::vector<int32_t> order;  // the positions, the chosen ones first
  };

  float budget_;
  DenseCache copy_;
  std::vector<Vote> votes_;    // [kv head]
  std::vector<int32_t> held_;  // the tokens that the cache held when it was last heard of
  const KvCache* from_ = nullptr;
  int64_t first_ = 0;  ///< the window's first position
  int64_t count_ = 0;  ///< positions copied; 0: all of the past is seen
};

}  // namespace verbatim
