#pragma once

#include "kernels/attention.h"

namespace verbatim {

/// A draft's narrower view of a cache (the baselines of QuantSpec §5.1).
class SparseCache {
 public:
  virtual ~SparseCache() = default;
  /// What rows near a position see of one head's past.
  virtual SparseView view(int64_t layer, int64_t head, int64_t position) const = 0;
};

}  // namespace verbatim
