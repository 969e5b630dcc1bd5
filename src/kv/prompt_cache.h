#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "kv/paged.h"

namespace verbatim {

/// Remembers the keys and values of beginnings that sequences have had, chunk by chunk, for sequences that
/// begin alike: they depend on the tokens alone, bit for bit. Whole chunks are shared; of the chunk in which
/// sequences part, the common positions are copied. All members may be called from several threads.
class PromptCache {
 public:
  /// `pool` outlives this.
  explicit PromptCache(PagePool& pool) : pool_(&pool) {}
  ~PromptCache();
  PromptCache(const PromptCache&) = delete;
  PromptCache& operator=(const PromptCache&) = delete;

  /// Fills an empty cache with what is known of a sequence of these tokens, but for its last, whose logits
  /// somebody wants.
  void find(std::span<const int32_t> tokens, PagedCache& cache);
  /// Remembers the whole chunks that a cache holds of these tokens and, of a sequence that has `ended` and
  /// will write no more, its last chunk too.
  void keep(std::span<const int32_t> tokens, const PagedCache& cache, bool ended);
  /// Forgets the least recently used chunk that no sequence uses. False when there is none.
  bool evict();
  /// Units of the pool that would be free if all were forgotten that no sequence uses.
  int64_t unused_units() const;

 private:
  /// A chunk after another; the root has none.
  struct Node {
    size_t parent = 0;
    std::vector<int32_t> tokens;
    PagePool::Page page;
    uint64_t used = 0;  // when
    std::vector<size_t> children;
    bool free = false;  // this place in nodes_ is for another
  };
  static constexpr size_t kRoot = 0;

  size_t child_of(size_t parent, std::span<const int32_t> tokens) const;
  size_t add(size_t parent, std::span<const int32_t> tokens, const PagePool::Page& page);
  void forget_beginnings(size_t parent, std::span<const int32_t> chunk);
  void remove(size_t node);

  PagePool* pool_;
  mutable std::mutex mutex_;
  std::vector<Node> nodes_{Node{}};
  std::vector<size_t> free_nodes_;
  uint64_t now_ = 0;
};

}  // namespace verbatim
