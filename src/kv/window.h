#pragma once

#include "kv/sparse.h"

namespace verbatim {

/// The view of StreamingLLM, for drafts: they see the first few positions, the attention sinks, and the
/// latest ones, together a share of the context. The cache itself is unchanged, because verification reads
/// all of it. So positions keep their rotary angles, whereas StreamingLLM, which evicts positions for good,
/// numbers the remaining ones anew.
class WindowView : public SparseCache {
 public:
  /// `budget`, above 0, is the share of the positions up to its own that a row sees.
  explicit WindowView(float budget) : budget_(budget) {}

  static constexpr int64_t kSinks = 4;

  /// The positions that a row at `position` sees. The latest ones begin exactly where the budget says, though
  /// attention reads whole chunks, so that comparisons are fair. Where they would begin in the first chunk,
  /// the row sees all positions.
  SparseView view(int64_t layer, int64_t head, int64_t position) const override;

 private:
  float budget_;
};

}  // namespace verbatim
