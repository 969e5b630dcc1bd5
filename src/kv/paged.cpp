#include "kv/paged.h"

#include <algorithm>
#include <cstring>

#include "kv/finite.h"
#include "kv/panel_place.h"

namespace verbatim {

void PagedCache::add(const PagePool::Page& page) {
  pages_.push_back(page);
  table_.push_back({pool_->data(page), page.positions()});
  capacity_ = (std::ssize(pages_) - 1) * kAttentionChunk + page.positions();
}

void PagedCache::pop() {
  pool_->give_back(pages_.back());
  pages_.pop_back();
  table_.pop_back();
  capacity_ = pages_.empty() ? 0 : (std::ssize(pages_) - 1) * kAttentionChunk + pages_.back().positions();
}

bool PagedCache::reserve(int64_t positions) {
  while (capacity_ < positions) {
    const bool grows = capacity_ % kAttentionChunk != 0;
    const int64_t chunk = capacity_ / kAttentionChunk;
    const int64_t wanted = std::min(positions - chunk * kAttentionChunk, kAttentionChunk);
    const std::optional<PagePool::Page> page =
        pool_->take(static_cast<int32_t>(ceil_div(wanted, PagePool::kUnit)));
    if (!page) return false;
    if (grows) {
      move(pages_.back(), *page);
      pop();
    }
    add(*page);
  }
  return true;
}

/// Copies the contents of a page into a larger page, whose panels of values are longer.
void PagedCache::move(const PagePool::Page& from, const PagePool::Page& to) const {
  const int64_t width = pool_->width();
  const int64_t old_panel = from.positions() * kPanelWidth;
  const int64_t new_panel = to.positions() * kPanelWidth;
  for (int64_t head = 0; head < shape_.layers * shape_.kv_heads; ++head) {
    const BFloat16* const old = pool_->data(from) + 2 * head * from.positions() * width;
    BFloat16* const now = pool_->data(to) + 2 * head * to.positions() * width;
    const int64_t kept = std::min(from.positions(), to.positions());
    std::copy_n(old, kept * width, now);
    for (int64_t panel = 0; panel < width / kPanelWidth; ++panel) {
      std::copy_n(old + from.positions() * width + panel * old_panel, kept * kPanelWidth,
                  now + to.positions() * width + panel * new_panel);
    }
  }
}

void PagedCache::trim() {
  while (!pages_.empty() && (std::ssize(pages_) - 1) * kAttentionChunk >= length_) pop();
}

void PagedCache::release() {
  length_ = 0;
  trim();
}

void PagedCache::write(int64_t layer, int64_t head, int64_t position, const float* key, const float* value) {
  const ChunkPage& page = table_[static_cast<size_t>(position / kAttentionChunk)];
  const int64_t slot = position % kAttentionChunk;
  const int64_t width = pool_->width();
  BFloat16* const keys = page.data + 2 * (layer * shape_.kv_heads + head) * page.positions * width;
  BFloat16* const values = keys + page.positions * width;
  for (int64_t d = 0; d < shape_.head_dim; ++d) {
    keys[panel_place(Element::kBf16, d, slot, width)] = to_bfloat16(key[d]);
    values[panel_place(Element::kBf16, slot, d, page.positions)] = finite_bfloat16(value[d]);
  }
}

HeadCache PagedCache::head(int64_t layer, int64_t head, CachePart) const {
  HeadCache cache;
  cache.width = pool_->width();
  cache.pages = table_.data();
  cache.page_head = layer * shape_.kv_heads + head;
  return cache;
}

int64_t PagedCache::bytes(int64_t positions) const {
  return ceil_div(positions, PagePool::kUnit) * pool_->unit_bytes();
}

int64_t PagedCache::units() const {
  return ceil_div(capacity_, PagePool::kUnit);
}

void PagedCache::adopt(const PagePool::Page& page) {
  pool_->share(page);
  add(page);
  length_ = capacity_;
}

bool PagedCache::copy(const PagePool::Page& page, int64_t positions) {
  const int64_t before = capacity_;
  if (!reserve(before + positions)) return false;
  move(page, pages_.back());
  length_ = before + positions;
  return true;
}

void PagedCache::restore_chunk(std::span<const std::byte> stored) {
  const int64_t chunk = length_ / kAttentionChunk;
  std::memcpy(pool_->data(pages_[static_cast<size_t>(chunk)]), stored.data(), stored.size());
  length_ = (chunk + 1) * kAttentionChunk;
}

}  // namespace verbatim
