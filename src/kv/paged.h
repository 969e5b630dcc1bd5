#pragma once

#include <span>
#include <vector>

#include "kv/page_pool.h"

namespace verbatim {

/// Keys and values in BF16 in pages of a pool, bit for bit what a DenseCache holds. It has memory for the
/// positions that reserve() was asked for; whole chunks may be shared with other sequences of the same
/// beginning.
class PagedCache : public KvCache {
 public:
  /// `pool` outlives the cache.
  explicit PagedCache(PagePool& pool) : KvCache(pool.shape(), 0), pool_(&pool) {}
  ~PagedCache() override { release(); }
  PagedCache(const PagedCache&) = delete;
  PagedCache& operator=(const PagedCache&) = delete;

  /// Makes room for positions below `positions`. Where the pool has none left it says false, and what was
  /// written stays.
  bool reserve(int64_t positions) override;
  /// Gives back the pages of positions from length() on.
  void trim();
  /// Gives everything back.
  void release();

  void write(int64_t layer, int64_t head, int64_t position, const float* key, const float* value) override;
  HeadCache head(int64_t layer, int64_t head, CachePart part = CachePart::kWhole) const override;
  int64_t bytes(int64_t positions) const override;
  int64_t bytes_read(int64_t positions, CachePart) const override { return bytes(positions); }

  /// Units of the pool that it holds, shared ones included.
  int64_t units() const;
  std::span<const PagePool::Page> pages() const { return pages_; }
  /// Continues with a whole chunk of another cache of the pool, as one more owner; it holds whole chunks
  /// alone so far.
  void adopt(const PagePool::Page& page);
  /// Continues with the first `positions` of a page of the pool, copied. False when the pool has no room.
  bool copy(const PagePool::Page& page, int64_t positions);

 private:
  void add(const PagePool::Page& page);
  void move(const PagePool::Page& from, const PagePool::Page& to) const;
  void pop();

  PagePool* pool_;
  std::vector<PagePool::Page> pages_;  // by chunk; all but the last have whole chunks
  std::vector<ChunkPage> table_;       // the same for attention
};

}  // namespace verbatim
