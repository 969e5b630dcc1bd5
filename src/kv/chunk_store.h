#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <thread>

#include "kv/chunk_folder.h"
#include "kv/kept_chunk.h"
#include "kv/paged.h"

namespace verbatim {

/// Keeps whole chunks of a pool's keys and values in a folder, where they are found again after a restart.
/// A thread of its own writes them: until then a chunk's page is held in the pool. A chunk is not kept if
/// too many wait to be written. That the disk fails is counted and changes nothing else. All members may be
/// called from several threads.
class ChunkStore {
 public:
  /// `pool` outlives the store. Throws Error(kBadInput) if the folder cannot be made or opened, and
  /// Error(kMachine) if there is no further thread. `most` is the most bytes that the folder's files may
  /// take.
  ChunkStore(PagePool& pool, const std::filesystem::path& folder, int64_t most);
  /// Writes what waits, for kMostSecondsAtEnd at most.
  ~ChunkStore();
  ChunkStore(const ChunkStore&) = delete;
  ChunkStore& operator=(const ChunkStore&) = delete;

  static constexpr std::chrono::seconds kMostSecondsAtEnd{10};

  /// A whole chunk of a sequence.
  struct Chunk {
    const ChunkOrigin* origin = nullptr;  ///< outlives the store
    Digest parent = {};
    Digest key = {};
    std::array<int32_t, static_cast<size_t>(kAttentionChunk)> tokens = {};
    PagePool::Page page = {};
    int64_t number = 0;  ///< how many chunks are before it in the sequence
  };
  /// Has a chunk written, unless it was written, read or found lately, and shares its page until then.
  void keep(const Chunk& chunk);

  /// Appends the kept chunks of a sequence of these tokens to what a cache, which has memory for all of them,
  /// holds of it, and returns how many positions became known. Positions in the middle of a chunk are
  /// replaced. The last token is left out, because it must be evaluated for its logits. Ends early when
  /// `stopped` says so.
  int64_t find(const ChunkOrigin& origin, std::span<const int32_t> tokens, PagedCache& cache,
               const std::function<bool()>& stopped);

  /// Gives up the chunk that came last among those that wait. Returns false if none waits.
  bool give_up();
  /// The number of the pool's units that are free as soon as the chunks are written that wait and that
  /// otherwise nobody but a PromptCache holds.
  int64_t waiting_units() const;
  /// How often something failed so far.
  int64_t errors() const { return errors_; }

 private:
  ChunkFolder::Outcome counted(ChunkFolder::Outcome outcome);
  template <typename Operation>
  ChunkFolder::Outcome guarded(Operation&& operation);
  bool read(const KeptChunkHeader& header, const Digest& key, std::span<std::byte> file, PagedCache& cache);
  void serve();
  void write_next(std::unique_lock<std::mutex>& lock);

  PagePool* pool_;
  ChunkFolder folder_;
  std::atomic<int64_t> errors_{0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Chunk> waiting_;
  std::map<Digest, std::chrono::steady_clock::time_point> known_;  // when keys were last written or used
  bool stopping_ = false;
  std::chrono::steady_clock::time_point end_;  // when to stop writing, if stopping_
  Buffer<std::byte> copy_;                     // of a page, for the thread that writes
  std::thread writer_;
};

}  // namespace verbatim
