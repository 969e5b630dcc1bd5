#include "kv/snapkv.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace verbatim {

namespace {

/// Max pooling: gives each position the largest share among itself and its neighbours.
void pool(const std::vector<float>& shares, std::vector<float>& pooled) {
  constexpr int64_t kAside = SnapKvView::kPooling / 2;
  const auto count = static_cast<int64_t>(shares.size());
  for (int64_t p = 0; p < count; ++p) {
    const auto begin = shares.begin() + std::max<int64_t>(p - kAside, 0);
    const auto end = shares.begin() + std::min(p + kAside + 1, count);
    pooled[static_cast<size_t>(p)] = *std::max_element(begin, end);
  }
}

}  // namespace

SnapKvView::SnapKvView(const CacheShape& shape, int64_t capacity, Element element, float budget)
    : budget_(budget),
      copy_(shape, std::max<int64_t>(selected_count(capacity, budget), 1), element),
      votes_(static_cast<size_t>(shape.kv_heads)) {}

int64_t SnapKvView::selected_count(int64_t prompt, float budget) {
  const auto kept = static_cast<int64_t>(static_cast<double>(budget) * static_cast<double>(prompt));
  return std::clamp<int64_t>(kept - kWindow, 0, std::max<int64_t>(prompt - kWindow, 0));
}

SparseView SnapKvView::view(int64_t layer, int64_t head, int64_t position) const {
  if (count_ == 0 || position < first_) return {};
  SparseView view;
  view.first = first_;
  view.selected_count = count_;
  view.selected = copy_.head(layer, head);
  return view;
}

int64_t SnapKvView::follow(std::span<const int32_t> tokens, const KvCache& cache) {
  const auto end = held_.begin() + std::min(static_cast<ptrdiff_t>(tokens.size()), std::ssize(held_));
  const auto differs = std::mismatch(held_.begin(), end, tokens.begin()).first;
  const auto same = static_cast<int64_t>(differs - held_.begin());
  const bool voided = same < first_ + (count_ > 0 ? kWindow : 0);
  held_.assign(tokens.begin(), tokens.end());
  const auto length = static_cast<int64_t>(tokens.size());
  if (!voided && length - same < kPromptTokens) return 0;
  count_ = selected_count(length, budget_);
  first_ = count_ > 0 ? length - kWindow : 0;
  if (count_ == 0) return 0;
  from_ = &cache;
  for (Vote& vote : votes_) {  // here, because observe() must not throw
    vote.shares.resize(static_cast<size_t>(first_));
    vote.pooled.resize(static_cast<size_t>(first_));
    vote.order.resize(static_cast<size_t>(first_));
  }
  return kWindow;
}

void SnapKvView::observe(int64_t layer, int64_t head, const AttentionBlock& block,
                         AttentionScratch& scratch) {
  Vote& vote = votes_[static_cast<size_t>(head)];
  std::fill(vote.shares.begin(), vote.shares.end(), 0.0f);
  add_attention_shares(block, scratch, vote.shares);
  for (float& share : vote.shares) {
    if (!std::isfinite(share))
      share = 0.0f;  // of a model that has gone astray: nothing can be sorted by that
  }
  pool(vote.shares, vote.pooled);
  std::iota(vote.order.begin(), vote.order.end(), 0);
  const auto chosen = vote.order.begin() + count_;
  // Pooling gives the neighbours of a large share the same value. Among equals the position with that share
  // comes first, then the earliest.
  std::nth_element(vote.order.begin(), chosen, vote.order.end(), [&](int32_t a, int32_t b) {
    const auto i = static_cast<size_t>(a);
    const auto j = static_cast<size_t>(b);
    if (vote.pooled[i] != vote.pooled[j]) return vote.pooled[i] > vote.pooled[j];
    if (vote.shares[i] != vote.shares[j]) return vote.shares[i] > vote.shares[j];
    return a < b;
  });
  std::sort(vote.order.begin(), chosen);
  const HeadCache from = from_->head(layer, head);
  for (int64_t i = 0; i < count_; ++i) {
    copy_.copy(layer, head, i, from, vote.order[static_cast<size_t>(i)]);
  }
}

}  // namespace verbatim
