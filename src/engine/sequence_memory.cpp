#include "engine/sequence_memory.h"

#include <algorithm>
#include <limits>

#include "base/available_memory.h"
#include "base/error.h"
#include "drafting/sparse_levels.h"
#include "engine/memory_check.h"
#include "engine/model_access.h"
#include "engine/model_identity.h"
#include "kernels/dispatch.h"
#include "kv/dense.h"
#include "kv/make_cache.h"

namespace verbatim {

namespace {

bool is_paged(const CacheOptions& cache) {
  return cache.kind == CacheOptions::Kind::kBf16;
}

/// Positions that the pool has for these options.
int64_t pool_positions(const Model& model, const EngineOptions& options, int64_t capacity) {
  const int64_t per_position = DenseCache::bytes_of(data_of(model).decoder.cache_shape(), 1);
  if (options.cache_bytes > 0) return std::max<int64_t>(options.cache_bytes / per_position, kAttentionChunk);
  // A last chunk moves from page to page as it grows.
  const int64_t one = round_up(capacity, kAttentionChunk) + kAttentionChunk;
  const int64_t available = available_memory().value_or(std::numeric_limits<int64_t>::max());
  return std::max(one, std::min(one * options.max_batch, available / 2 / per_position));
}

/// How much of a sequence's beginning may be shared with others. Drafts that choose parts of the past
/// evaluate the last rows of a prompt again (SnapKV): those are their own.
std::span<const int32_t> shareable(const Recipe& recipe, std::span<const int32_t> tokens) {
  constexpr size_t kEvaluatedAgain = 128;
  const bool sparse = std::any_of(recipe.levels.begin(), recipe.levels.end(), is_sparse);
  if (!sparse) return tokens;
  return tokens.first(tokens.size() > kEvaluatedAgain ? tokens.size() - kEvaluatedAgain : 0);
}

}  // namespace

PagedCache* pages_of(const Sequence& sequence) {
  return dynamic_cast<PagedCache*>(sequence.cache.get());
}

SequenceMemory::SequenceMemory(const Model& model, const EngineOptions& options, int64_t capacity)
    : model_(model),
      options_(options),
      capacity_(capacity),
      pool_(data_of(model).decoder.cache_shape(), pool_positions(model, options, capacity)) {
  if (options_.cache_dir.empty() || !options_.prompt_cache) return;
  store_ = std::make_unique<ChunkStore>(pool_, options_.cache_dir, options_.cache_dir_bytes);
  origin(std::string(reading_name(Reading::kFull)));  // now rather than when the first request waits for it
}

/// What the kept chunks of a reading depend on; null without a folder. The first call for a reading takes
/// long.
const ChunkOrigin* SequenceMemory::origin(const std::string& reading) {
  if (store_ == nullptr) return nullptr;
  {
    const std::lock_guard lock(origins_mutex_);
    const auto known = origins_.find(reading);
    if (known != origins_.end()) return &known->second;
  }
  const ModelData& model = data_of(model_);
  const CacheShape& shape = pool_.shape();
  const ChunkOrigin made{.model = digest_of(model, parse_reading(reading, "the recipe")),
                         .path = text_field<32>(kernels().rounding),
                         .reading = text_field<64>(reading),
                         .layers = static_cast<uint32_t>(shape.layers),
                         .kv_heads = static_cast<uint32_t>(shape.kv_heads),
                         .head_dim = static_cast<uint32_t>(shape.head_dim)};
  const std::lock_guard lock(origins_mutex_);
  return &origins_.emplace(reading, made).first->second;
}

PromptCache& SequenceMemory::prompts(const Recipe& recipe) {
  const ChunkOrigin* const known = origin(recipe.reading);
  const std::lock_guard lock(mutex_);
  return prompts_.try_emplace(recipe.reading, pool_, store_.get(), known).first->second;
}

bool SequenceMemory::evict() {
  const std::lock_guard lock(mutex_);
  const auto evicts = [](auto& entry) { return entry.second.evict(); };
  return std::any_of(prompts_.begin(), prompts_.end(), evicts) || (store_ != nullptr && store_->give_up());
}

int64_t SequenceMemory::unused_units() const {
  const std::lock_guard lock(mutex_);
  int64_t units = 0;
  for (const auto& [reading, prompts] : prompts_) units += prompts.unused_units();
  return units + (store_ != nullptr ? store_->waiting_units() : 0);
}

/// Bytes of the pool that are the process's already and that no sequence uses.
int64_t SequenceMemory::reusable_pages() const {
  const int64_t taken = pool_.total_units() - pool_.free_units();
  return (pool_.written_units() - (taken - unused_units())) * pool_.unit_bytes();
}

int64_t SequenceMemory::reusable_caches() const {
  const std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  for (const Kept& kept : kept_) bytes += kept.sequence.cache->bytes(kept.sequence.cache->length());
  return bytes;
}

void SequenceMemory::check(const Request& request, const ModelConfig* draft) {
  const ModelConfig& config = data_of(model_).checkpoint.config;
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t length = prompt + std::min(request.options.max_tokens, capacity_ - prompt);
  const bool paged = is_paged(request.recipe.cache);
  if (paged) origin(request.recipe.reading);  // here, because nobody else waits for this thread
  const int64_t cache = paged ? dense_cache_bytes(config, length)
                              : cache_bytes(request.recipe.cache, data_of(model_).decoder.cache_shape(),
                                            round_up(length, kAttentionChunk));
  require_memory({.tokens = length,
                  .cache = cache,
                  .draft_cache = draft_cache_bytes(request.recipe, config, draft, prompt, length),
                  .workspace = pass_workspace_bytes(config, std::min(prompt, request.options.prefill_chunk)),
                  .held = std::min(cache, paged ? reusable_pages() : reusable_caches())},
                 available_memory());
  const int64_t positions = (pool_.total_units() - PagePool::kUnitsPerBlock) * PagePool::kUnit;
  if (!paged || length <= positions) return;
  fail(ErrorKind::kMachine,
       "the request may take {} tokens, but the engine has memory for the keys and values of {}: shorten the "
       "prompt, generate fewer tokens, or give the engine more",
       length, std::max<int64_t>(positions, 0));
}

bool SequenceMemory::admit(Sequence& sequence, const Recipe& recipe, int64_t running) {
  if (!is_paged(recipe.cache)) {
    if (sequence.cache == nullptr) sequence.cache = own_cache(recipe, sequence.tokens, running);
    return true;
  }
  if (sequence.cache == nullptr) sequence.cache = std::make_unique<PagedCache>(pool_);
  return admit_pages(*pages_of(sequence), sequence.tokens, recipe, running);
}

bool SequenceMemory::admit_pages(PagedCache& pages, const std::vector<int32_t>& tokens, const Recipe& recipe,
                                 int64_t running) {
  if (options_.prompt_cache) prompts(recipe).find(shareable(recipe, tokens), pages);
  const auto known = static_cast<int64_t>(tokens.size());
  const int64_t wanted = ceil_div(known, PagePool::kUnit) - pages.units() + running;
  bool room = running == 0 || pool_.free_units() + unused_units() >= wanted;
  while (room && !pages.reserve(known)) room = evict();
  if (!room) {
    pages.release();
    return false;
  }
  const std::lock_guard lock(mutex_);
  remembered_ += pages.length();
  return true;
}

void SequenceMemory::read_kept(Sequence& sequence, const Recipe& recipe,
                               const std::function<bool()>& stopped) {
  PagedCache* const pages = pages_of(sequence);
  if (store_ == nullptr || pages == nullptr) return;
  const int64_t read =
      store_->find(*origin(recipe.reading), shareable(recipe, sequence.tokens), *pages, stopped);
  const std::lock_guard lock(mutex_);
  remembered_ += read;
  from_disk_ += read;
}

/// One that knows how the sequence begins if there is one, else an empty one, in place of the one that was
/// not used for longest.
std::unique_ptr<KvCache> SequenceMemory::own_cache(const Recipe& recipe, const std::vector<int32_t>& tokens,
                                                   int64_t running) {
  const std::lock_guard lock(mutex_);
  int64_t most = 0;
  auto best = kept_.end();
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    const std::vector<int32_t>& known = kept->sequence.tokens;
    const auto [differs, end] = std::mismatch(known.begin(), known.end(), tokens.begin(), tokens.end() - 1);
    const int64_t same = std::min<int64_t>(differs - known.begin(), kept->sequence.cache->length());
    if (kept->options != recipe.cache || kept->reading != recipe.reading || same <= most) continue;
    most = same;
    best = kept;
  }
  if (best != kept_.end()) {
    std::unique_ptr<KvCache> cache = std::move(best->sequence.cache);
    cache->set_length(most);
    remembered_ += cache->length();
    kept_.erase(best);
    return cache;
  }
  if (std::ssize(kept_) + running >= options_.max_batch && !kept_.empty()) kept_.erase(kept_.begin());
  return make_cache(recipe.cache, data_of(model_).decoder.cache_shape(), capacity_);
}

void SequenceMemory::remember_prompt(const Sequence& sequence, size_t prompt, const Recipe& recipe) {
  const PagedCache* const pages = pages_of(sequence);
  if (!options_.prompt_cache || pages == nullptr) return;
  prompts(recipe).keep(shareable(recipe, std::span(sequence.tokens).first(prompt)), *pages, false);
}

void SequenceMemory::end(Sequence& sequence, const Recipe& recipe, bool remember) {
  PagedCache* const pages = pages_of(sequence);
  const bool keep = options_.prompt_cache && remember && sequence.cache != nullptr;
  if (keep && pages != nullptr) prompts(recipe).keep(sequence.tokens, *pages, true);
  if (keep && pages == nullptr) {
    const std::lock_guard lock(mutex_);
    kept_.push_back({recipe.cache, recipe.reading, std::move(sequence)});
  }
  sequence.cache.reset();
}

void SequenceMemory::describe(EngineStats& stats) const {
  stats.cache_bytes = pool_.total_units() * pool_.unit_bytes();
  stats.cache_bytes_taken = stats.cache_bytes - pool_.free_units() * pool_.unit_bytes();
  stats.cache_bytes_remembered = unused_units() * pool_.unit_bytes();
  const std::lock_guard lock(mutex_);
  stats.prompt_tokens_remembered = remembered_;
  stats.prompt_tokens_from_disk = from_disk_;
  stats.disk_cache_errors = store_ != nullptr ? store_->errors() : 0;
}

}  // namespace verbatim
