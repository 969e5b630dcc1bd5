#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/processors.h"
#include "engine/job.h"
#include "engine/model_access.h"
#include "engine/sequence_memory.h"

namespace verbatim {

namespace {

void check(const EngineOptions& options) {
  if (options.max_batch < 1 || options.max_batch > 1024) {
    fail(ErrorKind::kUsage, "a batch of {} sequences is not possible (1 to 1024)", options.max_batch);
  }
  if (options.prompt_rows < 1 || options.capacity < 0 || options.cache_bytes < 0 || options.threads < 0 ||
      options.cache_dir_bytes < 0) {
    fail(ErrorKind::kUsage, "an engine's sizes cannot be negative, and prompts need at least a row");
  }
}

/// Lower ones go first: by priority, and then as they came.
int64_t order_of(int32_t priority, int64_t arrival) {
  constexpr int kArrivalBits = 31;
  return -int64_t{priority} * (int64_t{1} << kArrivalBits) + arrival;
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
  Implementation(const Model& model_, const EngineOptions& options_)
      : model(model_),
        options(options_),
        capacity(sequence_capacity(model_, options_.capacity)),
        memory(model_, options_, capacity),
        team(options_.threads > 0 ? options_.threads : hardware_threads()),
        batcher(
            team, options_, [this] { return memory.evict(); }, [this] { finish_ended(); }),
        slots(model_, batcher, capacity, options_.max_batch) {
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
  TokenStream submit(Request&& request);
  void finish_ended();
  bool admit(Job& job, std::exception_ptr& error);
  std::unique_ptr<Job> next_job();
  void serve();
  void start(Job& job);
  bool run(Job& job);
  void put_back(std::unique_ptr<Job> job);
  void finish(Job& job, std::exception_ptr error);

  Model model;
  EngineOptions options;
  int64_t capacity;
  SequenceMemory memory;
  ThreadTeam team;
  PassBatcher batcher;
  DecodingSlots slots;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::map<int64_t, std::unique_ptr<Job>> queue;  // by order
  std::set<const Job*> running;
  int64_t arrivals = 0;
  bool stopping = false;
  EngineStats counts;

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

TokenStream Engine::Implementation::submit(Request&& request) {
  check_options(request.options, request.recipe, data_of(model));
  const Sampler checked(request.options.sampling);
  data_of(model).text();
  if (request.recipe.needs_draft_model() && slots.draft_config() == nullptr) {
    fail(ErrorKind::kUsage, "recipe {} drafts with another model: give the engine one", request.recipe.name);
  }
  check_prompt(request.prompt, 0, request.options.max_tokens, capacity, model.vocab_size());
  memory.check(request, slots.draft_config());
  auto job = std::make_unique<Job>();
  job->structure = structure_cursor(request.options, data_of(model));
  job->request = std::move(request);
  job->stream = std::make_shared<TokenStream::State>();
  job->stream->notify = std::move(job->request.notify);
  TokenStream stream(job->stream);
  const int64_t most = std::min(job->request.options.max_tokens, capacity);
  job->sequence.tokens.reserve(job->request.prompt.size() + static_cast<size_t>(most) + 1);
  job->sequence.tokens = job->request.prompt;
  std::unique_lock lock(mutex);
  if (stopping) fail(ErrorKind::kUsage, "the engine is shutting down");
  if (most == 0) {
    ++arrivals;
    ++counts.finished;
    lock.unlock();
    job->stream->finish({});
    return stream;
  }
  job->order = order_of(job->request.priority, arrivals);
  const int64_t order = job->order;
  queue.emplace(order, std::move(job));
  ++arrivals;
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

/// Whether a job need not wait any longer, with `mutex` held: it has its memory, or there is an error.
bool Engine::Implementation::admit(Job& job, std::exception_ptr& error) {
  try {
    return memory.admit(job.sequence, job.request.recipe, std::ssize(running));
  } catch (...) {
    error = std::current_exception();
    return true;
  }
}

/// Waits for a job whose turn it is; null when the engine stops.
std::unique_ptr<Job> Engine::Implementation::next_job() {
  while (true) {
    finish_ended();
    std::unique_lock lock(mutex);
    if (stopping) return nullptr;
    if (!queue.empty() && queue.begin()->second->stopped()) continue;
    std::exception_ptr error;
    if (queue.empty() || !admit(*queue.begin()->second, error)) {
      changed.wait(lock);
      continue;
    }
    std::unique_ptr<Job> job = std::move(queue.begin()->second);
    queue.erase(queue.begin());
    if (!error) {
      running.insert(job.get());
      return job;
    }
    lock.unlock();
    finish(*job, error);
  }
}

void Engine::Implementation::serve() {
  while (std::unique_ptr<Job> job = next_job()) {
    std::exception_ptr error;
    bool ended = true;
    try {
      memory.read_kept(job->sequence, job->request.recipe, [&job] { return job->stopped().has_value(); });
      start(*job);
      ended = run(*job);
    } catch (...) {
      error = std::current_exception();
    }
    if (ended) {
      finish(*job, error);
    } else {
      put_back(std::move(job));
    }
  }
}

/// Gives a job what it decodes with, if it has not got it from an earlier turn.
void Engine::Implementation::start(Job& job) {
  if (job.slot != nullptr) return;
  job.slot = slots.take(job.request.recipe);
  job.slot->member.order = job.order;
  job.slot->member.pages = pages_of(job.sequence);
  job.slot->member.tokens = &job.sequence.tokens;
  job.slot->speculator->begin(
      job.request.options.sampling,
      constraint_of(job.request.options, data_of(model), job.structure, job.request.prompt.size()));
  const auto send = [&job](std::string_view text) {
    const GenerateResult& result = job.generation->result;
    job.stream->push(text, result, job.sent);
    job.sent = result.tokens.size();
    return !job.stream->cancelled;
  };
  const auto stopped = [this, &job] {
    const size_t prompt = job.request.prompt.size();
    if (!job.remembered && job.sequence.cache->length() >= static_cast<int64_t>(prompt)) {
      job.remembered = true;
      memory.remember_prompt(job.sequence, prompt, job.request.recipe);
    }
    job.slot->speculator->set_batch(batcher.size());
    return job.stopped();
  };
  const auto prompt_rows = [this] {
    return batcher.size() > 1 ? options.prompt_rows : std::numeric_limits<int64_t>::max();
  };
  job.generation.emplace(job.sequence, data_of(model), job.request.options, capacity,
                         Generation::Hooks{.on_text = send, .stopped = stopped, .prompt_rows = prompt_rows});
}

/// Takes part in passes until the answer is there, or the memory has gone to others: then it says false.
bool Engine::Implementation::run(Job& job) {
  struct Attached {
    Attached(PassBatcher& batcher_, PassBatcher::Member& member_) : batcher(batcher_), member(member_) {
      batcher.attach(member);
    }
    ~Attached() { batcher.detach(member); }
    PassBatcher& batcher;
    PassBatcher::Member& member;
  };
  try {
    const Attached attached(batcher, job.slot->member);
    job.generation->run(*job.slot->speculator);
  } catch (const Preempted&) {
    return false;
  }
  return true;
}

/// Puts a job that has lost its memory back where it came from.
void Engine::Implementation::put_back(std::unique_ptr<Job> job) {
  const std::lock_guard lock(mutex);
  running.erase(job.get());
  pages_of(job->sequence)->release();  // drafting has put the old length back
  const int64_t order = job->order;
  queue.emplace(order, std::move(job));
  changed.notify_all();
}

/// Ends a job that no pass has anything to do with any more.
void Engine::Implementation::finish(Job& job, std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex);
    running.erase(&job);
  }
  memory.end(job.sequence, job.request.recipe, !error && job.generation);
  if (job.slot != nullptr) slots.give_back(std::move(job.slot));
  {
    const std::lock_guard lock(mutex);
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
  if (job.sent < result.tokens.size()) job.stream->push({}, result, job.sent);
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
  implementation_->slots.set_draft_model(model);
}

void Engine::prepare(const Recipe& recipe, const std::function<void(double)>& progress) {
  DecodingSlots& slots = implementation_->slots;
  slots.give_back(slots.take(recipe, progress));
}

Recipe Engine::adapted(const Recipe& recipe) const {
  return implementation_->slots.adapted(recipe);
}

EngineStats Engine::stats() const {
  const Implementation& own = *implementation_;
  EngineStats stats;
  {
    const std::lock_guard lock(own.mutex);
    stats = own.counts;
    stats.waiting = std::ssize(own.queue);
    // Also those that are neither in the queue nor in `running` just now.
    stats.running = own.arrivals - stats.finished - stats.waiting;
  }
  const PassBatcher::Counts counts = own.batcher.counts();
  stats.whole_model = counts.whole_model;
  stats.drafts = counts.drafts;
  stats.preemptions = counts.preemptions;
  stats.positions_taken = counts.positions_taken;
  stats.positions_used = counts.positions_used;
  own.memory.describe(stats);
  return stats;
}

}  // namespace verbatim
