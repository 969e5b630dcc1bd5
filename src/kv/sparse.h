#pragma once

#include <span>

#include "attention/attention.h"
#include "kv/cache.h"

namespace verbatim {

/// Is shown the queries of a pass. An observed pass has the rows of one sequence alone, a chain.
class AttentionObserver {
 public:
  virtual ~AttentionObserver() = default;
  /// Is called once for each layer and key-value head with all rows of the pass, when their keys are in the
  /// cache. `block.out` is not set. Different heads may come from different threads, each with a scratch that
  /// has room for the block. Must not throw.
  virtual void observe(int64_t layer, int64_t head, const AttentionBlock& block,
                       AttentionScratch& scratch) = 0;
};

/// A narrower view of a cache, through which drafts see some positions only (the baselines of QuantSpec
/// §5.1).
class SparseCache : public AttentionObserver {
 public:
  /// The positions of one head that a row at `position` sees. All positions keep their rotary angles,
  /// whatever is left out between them.
  virtual SparseView view(int64_t layer, int64_t head, int64_t position) const = 0;

  /// Tells the view which tokens the cache holds, after a prompt and after every step. Returns how many of
  /// the last tokens must be evaluated once more with the view as the pass's observer, because their queries
  /// decide which positions are seen; usually 0.
  virtual int64_t follow(std::span<const int32_t> /*tokens*/, const KvCache& /*cache*/) { return 0; }
  void observe(int64_t /*layer*/, int64_t /*head*/, const AttentionBlock& /*block*/,
               AttentionScratch& /*scratch*/) override {}
};

}  // namespace verbatim
