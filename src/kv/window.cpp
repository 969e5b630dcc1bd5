#include "kv/window.h"

#include <algorithm>

namespace verbatim {

SparseView WindowView::view(int64_t /*layer*/, int64_t /*head*/, int64_t position) const {
  const int64_t past = position + 1;
  const auto seen = static_cast<int64_t>(static_cast<double>(budget_) * static_cast<double>(past));
  const int64_t recent = std::max<int64_t>(seen - kSinks, 1);
  if (past - recent < kAttentionChunk) return {};
  SparseView view;
  view.sinks = kSinks;
  view.first = past - recent;
  return view;
}

}  // namespace verbatim
