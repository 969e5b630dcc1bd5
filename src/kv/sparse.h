#pragma once

#include <span>

#include "kernels/attention.h"
#include "kv/cache.h"

namespace verbatim {

/// Sees the queries of a pass. Such a pass has the rows of one sequence, each after the one before it.
class AttentionObserver {
 public:
  virtual ~AttentionObserver() = default;
  /// Is called once for each layer and key-value head, when the keys of the rows are in the cache, with all
  /// rows of the pass; `out` is not set. Heads of a layer may come from different threads, each with a
  /// scratch that has room for the block. Must not throw.
  virtual void observe(int64_t layer, int64_t head, const AttentionBlock& block,
                       AttentionScratch& scratch) = 0;
};

/// A draft's narrower view of a cache (the baselines of QuantSpec §5.1).
class SparseCache : public AttentionObserver {
 public:
  /// What rows near a position see of one head's past. They keep the rotary angles of their own positions,
  /// whatever is left out between them.
  virtual SparseView view(int64_t layer, int64_t head, int64_t position) const = 0;

  /// Hears that the cache holds these tokens, after a prompt and after every step. Returns how many of the
  /// last ones are to be evaluated once more, with this as the pass's observer: 0 unless their queries decide
  /// what will be seen.
  virtual int64_t follow(std::span<const int32_t> /*tokens*/, const KvCache& /*cache*/) { return 0; }
  void observe(int64_t /*layer*/, int64_t /*head*/, const AttentionBlock& /*block*/,
               AttentionScratch& /*scratch*/) override {}
};

}  // namespace verbatim
