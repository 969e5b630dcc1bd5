#pragma once

#include "kv/sparse.h"

namespace verbatim {

/// StreamingLLM's view (Xiao et al. 2023), as a draft's: the first few positions, the attention sinks, and
/// the latest ones, together a share of the context. Nothing is copied and nothing forgotten: the cache below
/// is whole, because verification reads all of it. So positions also keep the rotary angles that they have
/// there, where StreamingLLM, which evicts for good, counts them anew within the window.
class WindowView : public SparseCache {
 public:
  /// `budget`: the share of a row's past, itself included, that it sees; above 0.
  explicit WindowView(float budget) : budget_(budget) {}

  static constexpr int64_t kSinks = 4;

  /// The last positions begin exactly where the budget says, so that a comparison is fair, though attention
  /// reads whole chunks. Where they would begin in the first chunk, all of the past is seen.
  SparseView view(int64_t layer, int64_t head, int64_t position) const override;

 private:
  float budget_;
};

}  // namespace verbatim
