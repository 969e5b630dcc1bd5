#include "kv/chunk_store.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <vector>

#include "base/error.h"

namespace verbatim {

namespace {

using Outcome = ChunkFolder::Outcome;

/// The most keys that are remembered as kept, which take about 25 MB.
constexpr size_t kMostKnown = size_t{1} << 18;
/// How long the time of last use of a file may be behind, for chunks that are in memory all the time.
constexpr std::chrono::minutes kUsedLately{10};

/// When a chunk was used that is used now. Of a sequence's chunks the last ones are the oldest, because
/// without those before them they are of no use.
int64_t time_of_use(int64_t number) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::nanoseconds(now).count() - 1000 * number;
}

int64_t page_bytes(const PagePool& pool) {
  return pool.unit_bytes() * PagePool::kUnitsPerBlock;
}

ChunkTokens chunk_of(std::span<const int32_t> tokens, int64_t number) {
  return ChunkTokens(tokens.subspan(static_cast<size_t>(number * kAttentionChunk), ChunkTokens::extent));
}

}  // namespace

ChunkStore::ChunkStore(PagePool& pool, const std::filesystem::path& folder, int64_t most)
    : pool_(&pool), folder_(folder, most), copy_(static_cast<size_t>(page_bytes(pool))) {
  try {
    writer_ = std::thread([this] { serve(); });
  } catch (const std::system_error&) {
    fail(ErrorKind::kMachine, "the machine does not allow a further thread, which writes keys and values");
  }
}

ChunkStore::~ChunkStore() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    end_ = std::chrono::steady_clock::now() + kMostSecondsAtEnd;
    changed_.notify_all();
  }
  writer_.join();
  while (give_up()) {
  }
}

Outcome ChunkStore::counted(Outcome outcome) {
  if (outcome == Outcome::kFailed) ++errors_;
  return outcome;
}

/// Counts an operation that failed or that had too little memory.
template <typename Operation>
Outcome ChunkStore::guarded(Operation&& operation) {
  try {
    return counted(operation());
  } catch (const std::bad_alloc&) {
    return counted(Outcome::kFailed);
  }
}

void ChunkStore::keep(const Chunk& chunk) {
  const std::lock_guard lock(mutex_);
  // Half of the pool: what waits must leave memory to those who decode without being given up at once.
  const int64_t most = std::max<int64_t>(pool_->total_units() / PagePool::kUnitsPerBlock / 2, 1);
  if (std::ssize(waiting_) >= most) return;
  const auto now = std::chrono::steady_clock::now();
  const auto known = known_.find(chunk.key);
  if (known != known_.end() && now - known->second < kUsedLately) return;
  if (known_.size() >= kMostKnown) known_.clear();
  known_[chunk.key] = now;
  pool_->share(chunk.page);
  waiting_.push_back(chunk);
  changed_.notify_all();
}

int64_t ChunkStore::find(const ChunkOrigin& origin, std::span<const int32_t> tokens, PagedCache& cache,
                         const std::function<bool()>& stopped) {
  const int64_t before = cache.length();
  const int64_t chunks = (std::ssize(tokens) - 1) / kAttentionChunk;
  const int64_t first = before / kAttentionChunk;
  if (first >= chunks) return 0;
  Digest parent = root_key(origin);
  for (int64_t number = 0; number < first; ++number) parent = chunk_key(parent, chunk_of(tokens, number));
  std::vector<Digest> found;
  std::vector<std::byte> file(sizeof(KeptChunkHeader) + static_cast<size_t>(page_bytes(*pool_)));
  for (int64_t number = first; number < chunks && !stopped(); ++number) {
    const ChunkTokens chunk = chunk_of(tokens, number);
    const Digest key = chunk_key(parent, chunk);
    const auto stored = static_cast<size_t>(page_bytes(*pool_));
    if (!read(kept_chunk_header(origin, parent, chunk, stored), key, file, cache)) break;
    found.push_back(key);
    parent = key;
  }
  for (int64_t i = 0; i < std::ssize(found); ++i) {
    counted(folder_.use(found[static_cast<size_t>(i)], time_of_use(first + i)));
  }
  const std::lock_guard lock(mutex_);
  for (const Digest& key : found) known_[key] = std::chrono::steady_clock::now();
  return cache.length() - before;
}

/// Reads one chunk into `file` and from there, if it is what its header should say, into the cache. Otherwise
/// it is deleted.
bool ChunkStore::read(const KeptChunkHeader& header, const Digest& key, std::span<std::byte> file,
                      PagedCache& cache) {
  const Outcome outcome = counted(folder_.find(key, file));
  const std::span<const std::byte> stored =
      outcome == Outcome::kDone ? kept_chunk(file, header) : std::span<const std::byte>();
  if (!stored.empty()) {
    cache.restore_chunk(stored);
    return true;
  }
  if (outcome == Outcome::kDone || outcome == Outcome::kUnfit) counted(folder_.remove(key));
  const std::lock_guard lock(mutex_);
  known_.erase(key);
  return false;
}

bool ChunkStore::give_up() {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) return false;
  pool_->give_back(waiting_.back().page);
  known_.erase(waiting_.back().key);
  waiting_.pop_back();
  return true;
}

int64_t ChunkStore::waiting_units() const {
  const std::lock_guard lock(mutex_);
  int64_t units = 0;
  for (const Chunk& chunk : waiting_) {
    if (pool_->owners(chunk.page) <= 2) units += chunk.page.units;
  }
  return units;
}

/// Writes the chunk that has waited for longest, with `lock` open meanwhile.
void ChunkStore::write_next(std::unique_lock<std::mutex>& lock) {
  const Chunk chunk = waiting_.front();
  waiting_.pop_front();
  // The lock is held while the page is copied, so that give_up() finds every page that is held.
  std::memcpy(copy_.data(), pool_->data(chunk.page), copy_.size());
  pool_->give_back(chunk.page);
  lock.unlock();
  const int64_t time = time_of_use(chunk.number);
  Outcome outcome = folder_.use(chunk.key, time);
  if (outcome != Outcome::kDone) {
    KeptChunkHeader header = kept_chunk_header(*chunk.origin, chunk.parent, chunk.tokens, copy_.size());
    header.checksum = kept_chunk_checksum(header, copy_.span());
    outcome = guarded(
        [&] { return folder_.write(chunk.key, std::as_bytes(std::span(&header, 1)), copy_.span(), time); });
  }
  lock.lock();
  if (outcome != Outcome::kDone) known_.erase(chunk.key);
}

/// The thread that writes.
void ChunkStore::serve() {
  guarded([this] { return folder_.clean(); });
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    const bool late = stopping_ && std::chrono::steady_clock::now() >= end_;
    if (waiting_.empty() || late) return;
    write_next(lock);
  }
}

}  // namespace verbatim
