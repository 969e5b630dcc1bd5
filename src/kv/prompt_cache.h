#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "kv/chunk_store.h"
#include "kv/paged.h"

namespace verbatim {

/// Keeps the keys and values of earlier sequences, chunk by chunk, for later sequences that begin with the
/// same tokens: keys and values depend on the tokens alone, bit for bit. Whole chunks are shared; of the
/// chunk in which two sequences begin to differ, the common positions are copied. All members may be called
/// from several threads.
class PromptCache {
 public:
  /// Keeps chunks in memory, and whole ones in a store as well unless `store` is null. `pool`, `store` and
  /// `origin`, which says what the store's chunks depend on, outlive the prompt cache.
  explicit PromptCache(PagePool& pool, ChunkStore* store = nullptr, const ChunkOrigin* origin = nullptr);
  ~PromptCache();
  PromptCache(const PromptCache&) = delete;
  PromptCache& operator=(const PromptCache&) = delete;

  /// Fills an empty cache with the positions of a sequence of these tokens that are kept in memory. The last
  /// token is left out, because it must be evaluated for its logits.
  void find(std::span<const int32_t> tokens, PagedCache& cache);
  /// Keeps the whole chunks that a cache holds of these tokens. Of a sequence that has `ended`, and so will
  /// not write again, the last chunk is kept, too.
  void keep(std::span<const int32_t> tokens, const PagedCache& cache, bool ended);
  /// Forgets the least recently used chunk among those that no sequence uses. Returns false if there is none.
  bool evict();
  /// The number of the pool's units that would become free if all chunks that no sequence uses were
  /// forgotten.
  int64_t unused_units() const;

 private:
  /// A kept chunk, whose parent is the chunk before it in its sequences. The root stands for the empty
  /// beginning.
  struct Node {
    size_t parent = 0;
    std::vector<int32_t> tokens = {};
    PagePool::Page page = {};
    Digest key = {};    // in the store, if there is one, of the root and of whole chunks
    int64_t depth = 0;  // chunks from the root to this one
    uint64_t used = 0;  // the value of now_ when it was last used
    std::vector<size_t> children = {};
    bool free = false;  // whether this element of nodes_ is unused
  };
  static constexpr size_t kRoot = 0;

  size_t child_of(size_t parent, std::span<const int32_t> tokens) const;
  size_t add(size_t parent, std::span<const int32_t> tokens, const PagePool::Page& page);
  void forget_beginnings(size_t parent, std::span<const int32_t> chunk);
  void remove(size_t node);
  void keep_in_store(size_t node);

  PagePool* pool_;
  ChunkStore* store_;
  const ChunkOrigin* origin_;
  mutable std::mutex mutex_;
  std::vector<Node> nodes_{Node{}};
  std::vector<size_t> free_nodes_;
  uint64_t now_ = 0;
};

}  // namespace verbatim
