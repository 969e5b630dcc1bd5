#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "base/available_memory.h"
#include "base/error.h"
#include "engine/job.h"
#include "engine/memory_check.h"
#include "engine/speculator_setup.h"
#include "kv/make_cache.h"
#include "kv/prompt_cache.h"
#include "speculation/sparse_levels.h"

namespace verbatim {

namespace {

/// Positions that the pool has for these options.
int64_t pool_positions(const Model& model, const EngineOptions& options, int64_t capacity) {
  const CacheShape shape = model.data().decoder.cache_shape();
  // A last chunk moves from page to page as it grows.
  const int64_t one = round_up(capacity, kAttentionChunk) + kAttentionChunk;
  const int64_t per_position = DenseCache::bytes_of(shape, 1);
  if (options.cache_bytes > 0) return std::max<int64_t>(options.cache_bytes / per_position, kAttentionChunk);
  const int64_t available = available_memory().value_or(std::numeric_limits<int64_t>::max());
  return std::max(one, std::min(one * options.max_batch, available / 2 / per_position));
}

int64_t capacity_of(const Model& model, const EngineOptions& options) {
  return options.capacity > 0 ? std::min<int64_t>(options.capacity, model.context()) : model.context();
}

void check(const EngineOptions& options) {
  if (options.max_batch < 1 || options.max_batch > 1024) {
    fail(ErrorKind::kUsage, "a batch of {} sequences is not possible (1 to 1024)", options.max_batch);
  }
  if (options.prompt_rows < 1 || options.capacity < 0 || options.cache_bytes < 0) {
    fail(ErrorKind::kUsage, "an engine's sizes cannot be negative, and prompts need at least a row");
  }
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

std::optional<FinishReason> Job::stopped() const {
  if (stream->cancelled) return FinishReason::kCancelled;
  if (request.deadline && std::chrono::steady_clock::now() >= *request.deadline) {
    return FinishReason::kDeadline;
  }
  return std::nullopt;
}

struct Engine::Implementation {
  /// One that has ended, in a cache of its own, for one that begins as it does.
  struct KeptSequence {
    CacheOptions options;
    Sequence sequence;
  };

  Implementation(const Model& model_, const EngineOptions& options_)
      : model(model_),
        options(options_),
        capacity(capacity_of(model_, options_)),
        pool(model_.data().decoder.cache_shape(), pool_positions(model_, options_, capacity)),
        prompts(pool),
        team(options_.threads > 0 ? options_.threads : hardware_threads()),
        batcher(
            model_.data().decoder, team, options_.prompt_rows, [this] { return prompts.evict(); },
            [this] { between_passes(); }) {
    workers.reserve(static_cast<size_t>(options.max_batch));
    try {
      for (int32_t i = 0; i < options.max_batch; ++i) workers.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
      stop();
      fail(ErrorKind::kMachine, "the machine does not allow {} threads: use a smaller batch",
           options.max_batch);
    }
  }
  ~Implementation() { stop(); }

  void stop();
  int64_t reusable_pages() const;
  int64_t reusable_caches() const;
  void check_memory(const Request& request) const;
  TokenStream submit(Request&& request);
  void finish_ended();
  void between_passes();
  std::unique_ptr<KvCache> own_cache(const CacheOptions& wanted, const std::vector<int32_t>& tokens);
  bool admit(Job& job);
  std::unique_ptr<Job> next_job();
  void serve();
  std::unique_ptr<Lane> lane_for(const Recipe& recipe, const std::function<void(double)>& progress);
  void give_lane_back(std::unique_ptr<Lane> lane);
  void start(Job& job);
  bool run(Job& job);
  void finish(Job& job, std::exception_ptr error);
  void remember(Job& job, bool ended);

  Model model;
  EngineOptions options;
  int64_t capacity;
  PagePool pool;
  PromptCache prompts;
  ThreadTeam team;
  ThreadTeam one_thread{1};  // packs heads of drafters, under lanes_mutex
  PassBatcher batcher;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::map<int64_t, std::unique_ptr<Job>> queue;  // by order
  std::set<const Job*> running;
  std::vector<KeptSequence> kept_sequences;  // the latest last
  int64_t arrivals = 0;
  bool stopping = false;
  EngineStats counts;

  std::mutex lanes_mutex;
  std::optional<Model> draft_model;
  std::vector<std::unique_ptr<Lane>> idle_lanes;
  std::vector<std::pair<Recipe, SharedSetup>> setups;

  std::vector<std::thread> workers;
};

void Engine::Implementation::stop() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
    for (const auto& [order, job] : queue) job->stream->cancelled = true;
    for (const Job* const job : running) job->stream->cancelled = true;
    changed.notify_all();
  }
  for (std::thread& worker : workers) worker.join();
  finish_ended();
}

/// Bytes of the pool that are the process's already and that no sequence uses.
int64_t Engine::Implementation::reusable_pages() const {
  const int64_t taken = pool.total_units() - pool.free_units();
  return (pool.written_units() - (taken - prompts.unused_units())) * pool.unit_bytes();
}

int64_t Engine::Implementation::reusable_caches() const {
  const std::lock_guard lock(mutex);
  int64_t bytes = 0;
  for (const KeptSequence& kept : kept_sequences) {
    bytes += kept.sequence.cache->bytes(kept.sequence.cache->length());
  }
  return bytes;
}

/// Refuses a request that could never be run.
void Engine::Implementation::check_memory(const Request& request) const {
  const ModelConfig& config = model.data().checkpoint.config;
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t length = prompt + std::min(request.options.max_tokens, capacity - prompt);
  const ModelConfig* const draft = draft_model ? &draft_model->data().checkpoint.config : nullptr;
  const bool paged = request.recipe.cache.kind == CacheOptions::Kind::kBf16;
  const int64_t cache = paged ? dense_cache_bytes(config, length)
                              : cache_bytes(request.recipe.cache, model.data().decoder.cache_shape(),
                                            round_up(length, kAttentionChunk));
  const ContextMemory memory{
      .tokens = length,
      .cache = cache,
      .draft_cache = draft_cache_bytes(request.recipe, config, draft, prompt, length),
      .workspace = pass_workspace_bytes(config, std::min(prompt, request.options.prefill_chunk)),
      .held = std::min(cache, paged ? reusable_pages() : reusable_caches())};
  require_memory(memory, available_memory());
  const int64_t positions = (pool.total_units() - PagePool::kUnitsPerBlock) * PagePool::kUnit;
  if (paged && length > positions) {
    fail(ErrorKind::kMachine,
         "the request may take {} tokens, but the engine has memory for the keys and values of {}: shorten "
         "the "
         "prompt, generate fewer tokens, or give the engine more",
         length, std::max<int64_t>(positions, 0));
  }
}

TokenStream Engine::Implementation::submit(Request&& request) {
  check_options(request.options, request.recipe, model.data());
  check_prompt(request.prompt, 0, request.options.max_tokens, capacity, model.vocab_size());
  check_memory(request);
  auto job = std::make_unique<Job>();
  job->request = std::move(request);
  job->stream = std::make_shared<TokenStream::State>();
  TokenStream stream(job->stream);
  if (job->request.options.max_tokens == 0) {
    job->stream->finish({});
    const std::lock_guard lock(mutex);
    ++counts.finished;
    return stream;
  }
  job->sequence.tokens.reserve(job->request.prompt.size() +
                               static_cast<size_t>(std::min(job->request.options.max_tokens, capacity)) + 1);
  job->sequence.tokens = job->request.prompt;
  const std::lock_guard lock(mutex);
  if (stopping) fail(ErrorKind::kUsage, "the engine is shutting down");
  constexpr int kArrivalBits = 31;
  job->order = (-int64_t{job->request.priority} * (int64_t{1} << kArrivalBits)) + arrivals++;
  const int64_t order = job->order;
  queue.emplace(order, std::move(job));
  changed.notify_all();
  return stream;
}

/// Ends those in the queue that nobody waits for any more.
void Engine::Implementation::finish_ended() {
  std::vector<std::unique_ptr<Job>> ended;
  {
    const std::lock_guard lock(mutex);
    for (auto i = queue.begin(); i != queue.end();) {
      if (i->second->stopped()) {
        ended.push_back(std::move(i->second));
        i = queue.erase(i);
      } else {
        ++i;
      }
    }
  }
  for (const std::unique_ptr<Job>& job : ended) {
    if (job->generation) job->generation->stop(job->stopped().value_or(FinishReason::kCancelled));
    finish(*job, nullptr);
  }
}

/// On the thread that is about to evaluate a pass, while all others that have sequences wait for it.
void Engine::Implementation::between_passes() {
  finish_ended();
  const std::lock_guard lock(mutex);
  for (const Job* const job : running) {
    if (job->pages == nullptr) continue;
    counts.positions_taken += job->pages->capacity();
    counts.positions_used += job->pages->length();
  }
}

/// A cache that is not made of pages, with `mutex` held: one that knows how the sequence begins if there is
/// one, else an empty one in place of the one that was not used for longest.
std::unique_ptr<KvCache> Engine::Implementation::own_cache(const CacheOptions& wanted,
                                                           const std::vector<int32_t>& tokens) {
  int64_t most = 0;
  auto best = kept_sequences.end();
  for (auto kept = kept_sequences.begin(); kept != kept_sequences.end(); ++kept) {
    const std::vector<int32_t>& known = kept->sequence.tokens;
    const auto [differs, end] = std::mismatch(known.begin(), known.end(), tokens.begin(), tokens.end() - 1);
    const int64_t same = std::min<int64_t>(differs - known.begin(), kept->sequence.cache->length());
    if (kept->options != wanted || same <= most) continue;
    most = same;
    best = kept;
  }
  std::unique_ptr<KvCache> cache;
  if (best != kept_sequences.end()) {
    cache = std::move(best->sequence.cache);
    cache->set_length(most);
    counts.prompt_tokens_remembered += cache->length();
    kept_sequences.erase(best);
    return cache;
  }
  if (std::ssize(kept_sequences) + std::ssize(running) >= options.max_batch && !kept_sequences.empty()) {
    kept_sequences.erase(kept_sequences.begin());
  }
  return make_cache(wanted, model.data().decoder.cache_shape(), capacity);
}

/// Gives a job the memory for what it knows, with `mutex` held. False when there is too little.
bool Engine::Implementation::admit(Job& job) {
  Sequence& sequence = job.sequence;
  if (sequence.cache == nullptr) {
    const CacheOptions& wanted = job.request.recipe.cache;
    if (wanted.kind == CacheOptions::Kind::kBf16) {
      auto pages = std::make_unique<PagedCache>(pool);
      job.pages = pages.get();
      sequence.cache = std::move(pages);
    } else {
      sequence.cache = own_cache(wanted, sequence.tokens);
    }
  }
  if (job.pages == nullptr) return true;
  PagedCache& pages = *job.pages;
  if (options.prompt_cache) prompts.find(shareable(job.request.recipe, sequence.tokens), pages);
  const auto known = static_cast<int64_t>(sequence.tokens.size());
  // Each of those that run will soon want another page.
  const int64_t wanted = ceil_div(known, PagePool::kUnit) - pages.units() + std::ssize(running);
  bool room = running.empty() || pool.free_units() + prompts.unused_units() >= wanted;
  while (room && !pages.reserve(known)) room = prompts.evict();
  if (!room) {
    pages.release();
    return false;
  }
  counts.prompt_tokens_remembered += pages.length();
  return true;
}

/// Waits for a job whose turn it is; null when the engine stops.
std::unique_ptr<Job> Engine::Implementation::next_job() {
  while (true) {
    finish_ended();
    std::unique_lock lock(mutex);
    if (stopping) return nullptr;
    if (!queue.empty() && !queue.begin()->second->stopped()) {
      Job& first = *queue.begin()->second;
      bool admitted = false;
      try {
        admitted = admit(first);
      } catch (...) {
        const std::unique_ptr<Job> job = std::move(queue.begin()->second);
        queue.erase(queue.begin());
        lock.unlock();
        finish(*job, std::current_exception());
        continue;
      }
      if (admitted) {
        std::unique_ptr<Job> job = std::move(queue.begin()->second);
        queue.erase(queue.begin());
        running.insert(job.get());
        return job;
      }
    }
    changed.wait(lock);
  }
}

void Engine::Implementation::serve() {
  while (std::unique_ptr<Job> job = next_job()) {
    std::exception_ptr error;
    bool ended = true;
    try {
      start(*job);
      ended = run(*job);
    } catch (...) {
      error = std::current_exception();
    }
    if (ended) {
      finish(*job, error);
      continue;
    }
    const std::lock_guard lock(mutex);
    running.erase(job.get());
    const int64_t order = job->order;
    queue.emplace(order, std::move(job));
    changed.notify_all();
  }
}

/// A lane for a recipe, used before if there is one.
std::unique_ptr<Lane> Engine::Implementation::lane_for(const Recipe& recipe,
                                                       const std::function<void(double)>& progress) {
  const std::lock_guard lock(lanes_mutex);
  for (std::unique_ptr<Lane>& idle : idle_lanes) {
    if (idle->recipe != recipe) continue;
    std::unique_ptr<Lane> lane = std::move(idle);
    std::erase(idle_lanes, nullptr);
    return lane;
  }
  auto setup = std::find_if(setups.begin(), setups.end(), [&](const auto& s) { return s.first == recipe; });
  if (setup == setups.end()) setup = setups.insert(setups.end(), {recipe, {}});
  auto lane = std::make_unique<Lane>();
  const ModelData& data = model.data();
  lane->evaluator = std::make_unique<Evaluator>(batcher.runner(lane->member, data.decoder));
  lane->recipe = recipe;
  const ModelData* const draft = draft_model ? &draft_model->data() : nullptr;
  lane->speculator =
      make_speculator(recipe, data, draft, *lane->evaluator, capacity, one_thread, progress, &setup->second);
  return lane;
}

void Engine::Implementation::give_lane_back(std::unique_ptr<Lane> lane) {
  const std::lock_guard lock(lanes_mutex);
  lane->member.pages = nullptr;
  idle_lanes.push_back(std::move(lane));
  if (std::ssize(idle_lanes) > options.max_batch) idle_lanes.erase(idle_lanes.begin());
}

/// Gives a job what it decodes with, if it has not got it from an earlier turn.
void Engine::Implementation::start(Job& job) {
  if (job.lane != nullptr) return;
  job.lane = lane_for(job.request.recipe, {});
  job.lane->member.order = job.order;
  job.lane->member.pages = job.pages;
  job.lane->speculator->begin(job.request.options.sampling);
  const auto send = [this, &job](std::string_view text) {
    const std::vector<int32_t>& tokens = job.generation->result.tokens;
    job.stream->push(text, std::span(tokens).subspan(job.sent));
    job.sent = tokens.size();
    return !job.stream->cancelled;
  };
  const auto stopped = [this, &job] {
    remember(job, false);
    job.lane->speculator->set_batch(batcher.size());
    return job.stopped();
  };
  const auto prompt_rows = [this] {
    return batcher.size() > 1 ? options.prompt_rows : std::numeric_limits<int64_t>::max();
  };
  job.generation.emplace(job.sequence, model.data(), job.request.options, capacity,
                         Generation::Hooks{.on_text = send, .stopped = stopped, .prompt_rows = prompt_rows});
}

/// Takes part in passes until the answer is there, or the memory has gone to others: then it says false.
bool Engine::Implementation::run(Job& job) {
  PassBatcher::Member& member = job.lane->member;
  struct Attached {
    Attached(PassBatcher& batcher_, PassBatcher::Member& member_) : batcher(batcher_), member(member_) {
      batcher.attach(member);
    }
    ~Attached() { batcher.detach(member); }
    PassBatcher& batcher;
    PassBatcher::Member& member;
  };
  try {
    const Attached attached(batcher, member);
    job.generation->run(*job.lane->speculator);
  } catch (const Preempted&) {
    job.pages->release();  // drafting has put the old length back
    return false;
  }
  return true;
}

/// Gives the prompt, or all of a sequence that has ended, to the prompt cache.
void Engine::Implementation::remember(Job& job, bool ended) {
  if (!options.prompt_cache || job.pages == nullptr) return;
  const std::vector<int32_t>& tokens = job.sequence.tokens;
  if (ended) {
    prompts.keep(tokens, *job.pages, true);
  } else if (!job.remembered && job.pages->length() >= std::ssize(job.request.prompt)) {
    job.remembered = true;
    prompts.keep(shareable(job.request.recipe, job.request.prompt), *job.pages, false);
  }
}

/// Ends a job that no pass has anything to do with any more.
void Engine::Implementation::finish(Job& job, std::exception_ptr error) {
  if (!error && job.generation) remember(job, true);
  if (job.pages != nullptr) job.pages->release();
  if (job.lane != nullptr) give_lane_back(std::move(job.lane));
  {
    const std::lock_guard lock(mutex);
    running.erase(&job);
    if (options.prompt_cache && !error && job.pages == nullptr && job.sequence.cache != nullptr) {
      kept_sequences.push_back({job.request.recipe.cache, std::move(job.sequence)});
    }
    ++counts.finished;
    changed.notify_all();
  }
  if (error) {
    job.stream->fail(error);
    return;
  }
  GenerateResult result;
  if (job.generation) {
    result = std::move(job.generation->result);
  } else {
    result.stats.finish = job.stopped().value_or(FinishReason::kCancelled);
  }
  if (job.sent < result.tokens.size()) job.stream->push({}, std::span(result.tokens).subspan(job.sent));
  job.stream->finish(std::move(result));
}

Engine::Engine(const Model& model, const EngineOptions& options) {
  check(options);
  implementation_ = std::make_unique<Implementation>(model, options);
}
Engine::~Engine() = default;

TokenStream Engine::submit(Request request) {
  return implementation_->submit(std::move(request));
}

void Engine::set_draft_model(const Model& model) {
  const std::lock_guard lock(implementation_->lanes_mutex);
  implementation_->draft_model = model;
}

void Engine::prepare(const Recipe& recipe, const std::function<void(double)>& progress) {
  implementation_->give_lane_back(implementation_->lane_for(recipe, progress));
}

EngineStats Engine::stats() const {
  const Implementation& own = *implementation_;
  EngineStats stats;
  {
    const std::lock_guard lock(own.mutex);
    stats = own.counts;
    stats.waiting = std::ssize(own.queue);
    stats.running = std::ssize(own.running);
  }
  const PassBatcher::Counts counts = own.batcher.counts();
  stats.whole_model = counts.whole_model;
  stats.drafts = counts.drafts;
  stats.preemptions = counts.preemptions;
  stats.cache_bytes = own.pool.total_units() * own.pool.unit_bytes();
  stats.cache_bytes_taken = stats.cache_bytes - own.pool.free_units() * own.pool.unit_bytes();
  stats.cache_bytes_remembered = own.prompts.unused_units() * own.pool.unit_bytes();
  return stats;
}

}  // namespace verbatim
