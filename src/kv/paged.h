#pragma once

#include <span>
#include <vector>

#include "kv/page_pool.h"

namespace verbatim {

/// A cache of keys and values in BF16 in pages of a pool, with the same bits as a DenseCache. It has memory
/// only for positions that reserve() was called for. Its whole chunks may be shared with other sequences that
/// begin with the same tokens.
class PagedCache : public KvCache {
 public:
  /// `pool` outlives the cache.
  explicit PagedCache(PagePool& pool) : KvCache(pool.shape(), 0), pool_(&pool) {}
  ~PagedCache() override { release(); }
  PagedCache(const PagedCache&) = delete;
  PagedCache& operator=(const PagedCache&) = delete;

  /// Makes room for positions below `positions`. Returns false if the pool has not enough memory; the
  /// positions written so far stay.
  bool reserve(int64_t positions) override;
  /// Gives the pages of positions from length() on back to the pool.
  void trim();
  /// Gives all pages back to the pool.
  void release();

  void write(int64_t layer, int64_t head, int64_t position, const float* key, const float* value) override;
  HeadCache head(int64_t layer, int64_t head, CachePart part = CachePart::kWhole) const override;
  int64_t bytes(int64_t positions) const override;
  int64_t bytes_read(int64_t positions, CachePart) const override { return bytes(positions); }

  /// The number of units of the pool that this cache holds, shared ones included.
  int64_t units() const;
  std::span<const PagePool::Page> pages() const { return pages_; }
  /// Appends a whole chunk of another cache of the pool and becomes one more owner of its page. The cache
  /// must hold nothing but whole chunks so far.
  void adopt(const PagePool::Page& page);
  /// Appends a copy of the first `positions` positions of a page of the pool. Returns false if the pool has
  /// no room.
  bool copy(const PagePool::Page& page, int64_t positions);
  /// Replaces the whole chunk that position length() lies in, and length() becomes the end of that chunk.
  /// `stored` is as long as a page of a whole chunk and holds what such a page held. The chunk must have such
  /// a page, which no other cache shares.
  void restore_chunk(std::span<const std::byte> stored);

 private:
  void add(const PagePool::Page& page);
  void move(const PagePool::Page& from, const PagePool::Page& to) const;
  void pop();

  PagePool* pool_;
  std::vector<PagePool::Page> pages_;  // by chunk; all but the last hold whole chunks
  std::vector<ChunkPage> table_;       // by chunk: pages_ in the form that attention reads
};

}  // namespace verbatim
