#include "kv/prompt_cache.h"

#include <algorithm>

namespace verbatim {

namespace {

/// The smallest number of common positions that is copied: fewer are evaluated again in less time.
constexpr size_t kLeastCopied = 8;

size_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  const auto differs = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(differs.first - a.begin());
}

}  // namespace

PromptCache::PromptCache(PagePool& pool, ChunkStore* store, const ChunkOrigin* origin)
    : pool_(&pool), store_(store), origin_(origin) {
  if (store_ != nullptr) nodes_[kRoot].key = root_key(*origin_);
}

PromptCache::~PromptCache() {
  for (const Node& node : nodes_) {
    if (node.page.block >= 0) pool_->give_back(node.page);
  }
}

/// The child of `parent` with exactly these tokens; kRoot if there is none.
size_t PromptCache::child_of(size_t parent, std::span<const int32_t> tokens) const {
  for (const size_t child : nodes_[parent].children) {
    if (std::ranges::equal(nodes_[child].tokens, tokens)) return child;
  }
  return kRoot;
}

void PromptCache::find(std::span<const int32_t> tokens, PagedCache& cache) {
  constexpr auto kChunk = static_cast<size_t>(kAttentionChunk);
  if (tokens.empty()) return;
  tokens = tokens.first(tokens.size() - 1);
  const std::lock_guard lock(mutex_);
  ++now_;
  size_t at = kRoot;
  while (tokens.size() >= kChunk) {
    const size_t child = child_of(at, tokens.first(kChunk));
    if (child == kRoot) break;
    cache.adopt(nodes_[child].page);
    nodes_[child].used = now_;
    tokens = tokens.subspan(kChunk);
    at = child;
  }
  size_t best = kRoot;
  size_t most = kLeastCopied - 1;
  for (const size_t child : nodes_[at].children) {
    const size_t common = common_prefix(nodes_[child].tokens, tokens);
    if (common <= most) continue;
    most = common;
    best = child;
  }
  if (best != kRoot && cache.copy(nodes_[best].page, static_cast<int64_t>(most))) nodes_[best].used = now_;
}

size_t PromptCache::add(size_t parent, std::span<const int32_t> tokens, const PagePool::Page& page) {
  size_t node = nodes_.size();
  if (free_nodes_.empty()) {
    nodes_.emplace_back();
  } else {
    node = free_nodes_.back();
    free_nodes_.pop_back();
  }
  pool_->share(page);
  nodes_[node] = {.parent = parent,
                  .tokens = {tokens.begin(), tokens.end()},
                  .page = page,
                  .depth = nodes_[parent].depth + 1,
                  .used = now_};
  if (store_ != nullptr && tokens.size() == ChunkTokens::extent) {
    nodes_[node].key = chunk_key(nodes_[parent].key, ChunkTokens(tokens));
  }
  nodes_[parent].children.push_back(node);
  return node;
}

void PromptCache::keep(std::span<const int32_t> tokens, const PagedCache& cache, bool ended) {
  constexpr auto kChunk = static_cast<size_t>(kAttentionChunk);
  tokens = tokens.first(std::min(tokens.size(), static_cast<size_t>(cache.length())));
  const std::lock_guard lock(mutex_);
  ++now_;
  size_t at = kRoot;
  for (const PagePool::Page& page : cache.pages()) {
    const std::span<const int32_t> chunk = tokens.first(std::min(tokens.size(), kChunk));
    const bool whole = chunk.size() == kChunk;
    if (!whole && (!ended || chunk.size() < kLeastCopied)) return;
    const size_t known = child_of(at, chunk);
    if (known == kRoot) forget_beginnings(at, chunk);
    at = known != kRoot ? known : add(at, chunk, page);
    nodes_[at].used = now_;
    if (!whole) return;
    if (store_ != nullptr) keep_in_store(at);
    tokens = tokens.subspan(kChunk);
  }
}

void PromptCache::keep_in_store(size_t node) {
  const Node& kept = nodes_[node];
  ChunkStore::Chunk chunk{.origin = origin_,
                          .parent = nodes_[kept.parent].key,
                          .key = kept.key,
                          .page = kept.page,
                          .number = kept.depth - 1};
  std::ranges::copy(kept.tokens, chunk.tokens.begin());
  store_->keep(chunk);
}

/// Removes children of `parent` whose tokens are a beginning of those of the chunk that will be added.
void PromptCache::forget_beginnings(size_t parent, std::span<const int32_t> chunk) {
  const std::vector<size_t> children = nodes_[parent].children;
  for (const size_t child : children) {
    const Node& node = nodes_[child];
    if (node.tokens.size() < chunk.size() && common_prefix(node.tokens, chunk) == node.tokens.size()) {
      remove(child);
    }
  }
}

void PromptCache::remove(size_t node) {
  Node& gone = nodes_[node];
  pool_->give_back(gone.page);
  std::erase(nodes_[gone.parent].children, node);
  gone = {};
  gone.free = true;
  free_nodes_.push_back(node);
}

bool PromptCache::evict() {
  const std::lock_guard lock(mutex_);
  size_t oldest = kRoot;
  for (size_t i = 1; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (node.free || !node.children.empty() || pool_->owners(node.page) > 1) continue;
    if (oldest == kRoot || node.used < nodes_[oldest].used) oldest = i;
  }
  if (oldest == kRoot) return false;
  remove(oldest);
  return true;
}

int64_t PromptCache::unused_units() const {
  const std::lock_guard lock(mutex_);
  int64_t units = 0;
  for (size_t i = 1; i < nodes_.size(); ++i) {
    if (!nodes_[i].free && pool_->owners(nodes_[i].page) == 1) units += nodes_[i].page.units;
  }
  return units;
}

}  // namespace verbatim
