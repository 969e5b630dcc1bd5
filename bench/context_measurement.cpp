#include "bench/context_measurement.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>

#include "base/available_memory.h"
#include "base/processors.h"
#include "bench/bandwidth_sweep.h"
#include "bench/filled_cache.h"
#include "bench/passes_measurement.h"
#include "drafting/drafter_stack.h"
#include "drafting/sparse_levels.h"
#include "engine/memory_check.h"
#include "engine/model_access.h"

namespace verbatim::bench {

namespace {

/// A pass over some rows behind a context, timed in turns with others.
class PassCase {
 public:
  PassCase(const Decoder& decoder, PassKind kind, KvCache& cache, int64_t context, int64_t rows,
           DecoderWorkspace& workspace, ThreadTeam& team)
      : decoder_(decoder), kind_(kind), cache_(cache), workspace_(workspace), team_(team) {
    for (int64_t r = 0; r < rows; ++r) {
      rows_.push_back({.sequence = 0,
                       .position = static_cast<int32_t>(context + r),
                       .token = bench_token(context + r, decoder)});
    }
  }

  void run() {
    KvCache* const caches[] = {&cache_};
    const auto start = std::chrono::steady_clock::now();
    decoder_.forward(rows_, kind_, caches, 0, workspace_, team_);
    seconds_.push_back(seconds_since(start));
  }
  int rounds() const { return static_cast<int>(seconds_.size()); }
  double seconds() const { return median(seconds_); }
  void forget_the_first() { seconds_.clear(); }

 private:
  const Decoder& decoder_;
  PassKind kind_;
  KvCache& cache_;
  DecoderWorkspace& workspace_;
  ThreadTeam& team_;
  std::vector<Row> rows_;
  std::vector<double> seconds_;
};

/// Runs the passes in turns, so that a machine whose speed drifts treats them alike.
void run_in_turns(std::vector<PassCase>& passes, const ContextBenchPlan& plan) {
  for (PassCase& pass : passes) {
    pass.run();  // pages and workspaces
    pass.forget_the_first();
  }
  const auto some_is_short = [&] {
    return std::any_of(passes.begin(), passes.end(),
                       [&](const PassCase& pass) { return pass.rounds() < plan.min_rounds; });
  };
  const auto start = std::chrono::steady_clock::now();
  while (some_is_short() || seconds_since(start) < plan.seconds * static_cast<double>(passes.size())) {
    for (PassCase& pass : passes) pass.run();
  }
}

CacheShape shape_of(const app::DecodeCase& one) {
  return data_of(one.model).decoder.cache_shape();
}

/// The caches of the cases, each once, plain's first.
std::vector<CacheOptions> kinds_of(const std::vector<app::DecodeCase>& cases) {
  std::vector<CacheOptions> kinds;
  for (const app::DecodeCase& one : cases) {
    if (std::find(kinds.begin(), kinds.end(), one.recipe.cache) == kinds.end())
      kinds.push_back(one.recipe.cache);
  }
  return kinds;
}

/// One context: the passes of plain decoding and of every recipe.
class Context {
 public:
  Context(const std::vector<app::DecodeCase>& cases, const std::vector<ContextAcceptance>& acceptance,
          const ContextBenchPlan& plan, int64_t context, ThreadTeam& team)
      : cases_(cases), acceptance_(acceptance), plan_(plan), context_(context), team_(team) {}

  /// Refuses the context unless each of its caches fits into memory alone.
  void require_room() const {
    for (const CacheOptions& kind : kinds_of(cases_)) {
      require_memory(memory({&kind, 1}), available_memory());
    }
  }

  void measure(std::vector<ContextResult>& results) {
    const std::vector<CacheOptions> kinds = kinds_of(cases_);
    in_turns_ = kinds.size() == 1 || fits(kinds);
    if (in_turns_) {
      measure_with(kinds);
    } else {
      for (const CacheOptions& kind : kinds) measure_with({&kind, 1});
    }
    for (size_t i = 1; i < cases_.size(); ++i) results.push_back(best(i));
  }

 private:
  struct Costs {
    double draft = 0;
    std::vector<double> verify;  // by the plan's lengths
  };

  /// Of the passes that are measured.
  int64_t most_rows() const { return *std::max_element(plan_.lengths.begin(), plan_.lengths.end()) + 1; }

  /// Keys and values of the context and the rows after it in every one of these caches, and what drafts copy.
  ContextMemory memory(std::span<const CacheOptions> kinds) const {
    ContextMemory memory;
    memory.tokens = context_;
    for (const CacheOptions& kind : kinds) {
      memory.cache += cache_bytes(kind, shape_of(cases_.front()), context_ + most_rows());
    }
    for (size_t i = 1; i < cases_.size(); ++i) {
      if (std::find(kinds.begin(), kinds.end(), cases_[i].recipe.cache) == kinds.end()) continue;
      memory.draft_cache += copied_bytes(cases_[i]);
    }
    return memory;
  }
  bool fits(std::span<const CacheOptions> kinds) const {
    const std::optional<int64_t> available = available_memory();
    return !available || memory(kinds).wanted() <= *available;
  }

  /// The passes of the recipes that have one of these caches, in turns.
  void measure_with(std::span<const CacheOptions> kinds) {
    require_memory(memory(kinds), available_memory());
    std::vector<std::unique_ptr<KvCache>> caches;
    for (const CacheOptions& kind : kinds) {
      caches.push_back(filled_cache(kind, shape_of(cases_.front()), context_, most_rows(), team_));
    }
    std::vector<PassCase> passes;
    std::vector<size_t> of;  // the case of each
    for (size_t i = 0; i < cases_.size(); ++i) {
      const auto kind = std::find(kinds.begin(), kinds.end(), cases_[i].recipe.cache);
      if (kind == kinds.end()) continue;
      KvCache& cache = *caches[static_cast<size_t>(kind - kinds.begin())];
      const Decoder& decoder = data_of(cases_[i].model).decoder;
      const auto add = [&](const PassKind& pass, int64_t rows) {
        passes.emplace_back(decoder, pass, cache, context_, rows, workspace_, team_);
        of.push_back(i);
      };
      if (i == 0) {
        add(Reading::kFull, 1);
        continue;
      }
      PassKind drafting = pass_kind(cases_[i].recipe.levels.front(), cases_[i].recipe.name);
      drafting.sparse = views_.emplace_back(sparse_view(cases_[i], cache)).get();
      add(drafting, 1);
      for (const int32_t length : plan_.lengths) add(Reading::kFull, length + 1);
    }
    run_in_turns(passes, plan_);
    costs_.resize(cases_.size());
    std::vector<size_t> taken(cases_.size(), 0);
    for (size_t p = 0; p < passes.size(); ++p) {
      Costs& costs = costs_[of[p]];
      if (taken[of[p]]++ == 0) {
        costs.draft = passes[p].seconds();
      } else {
        costs.verify.push_back(passes[p].seconds());
      }
    }
    views_.clear();  // their copies are in the way of the next caches
  }

  /// What the drafts of a recipe see of the context, if that is not all of it.
  std::unique_ptr<SparseCache> sparse_view(const app::DecodeCase& one, KvCache& cache) {
    const Decoder& decoder = data_of(one.model).decoder;
    std::unique_ptr<SparseCache> view =
        make_view(one.recipe.levels.front(), one.recipe.cache, shape_of(one), cache.capacity());
    if (view == nullptr) return nullptr;
    std::vector<int32_t> tokens(static_cast<size_t>(context_));
    for (int64_t p = 0; p < context_; ++p) tokens[static_cast<size_t>(p)] = bench_token(p, decoder);
    const int64_t count = view->follow(tokens, cache);
    if (count == 0) return view;
    std::vector<Row> rows;
    for (int64_t p = context_ - count; p < context_; ++p) {
      rows.push_back({0, static_cast<int32_t>(p), bench_token(p, decoder)});
    }
    PassKind kind(Reading::kFull);
    kind.observer = view.get();
    KvCache* const caches[] = {&cache};
    decoder.forward(rows, kind, caches, count, workspace_, team_);
    return view;
  }

  int64_t copied_bytes(const app::DecodeCase& one) const {
    return dense_cache_bytes(data_of(one.model).checkpoint.config,
                             copied_positions(one.recipe.levels.front(), context_));
  }

  ContextResult best(size_t i) const {
    const app::DecodeCase& one = cases_[i];
    const CacheShape shape = shape_of(one);
    ContextResult result{.recipe = one.recipe.name,
                         .context = context_,
                         .plain = costs_.front().draft,
                         .draft = costs_[i].draft,
                         .length_shipped = plan_.shipped[i],
                         .cache_bytes = cache_bytes(one.recipe.cache, shape, context_) + copied_bytes(one),
                         .plain_cache_bytes = cache_bytes(cases_.front().recipe.cache, shape, context_),
                         .weight_bytes = one.weight_bytes,
                         .in_turns = in_turns_};
    result.speedup = 0;
    for (size_t l = 0; l < plan_.lengths.size(); ++l) {
      const int32_t length = plan_.lengths[l];
      const double tokens = acceptance_[i].tokens_per_step(length);
      const double seconds = length * costs_[i].draft + costs_[i].verify[l];
      const double speedup = tokens * result.plain / seconds;
      if (length == result.length_shipped) result.speedup_shipped = speedup;
      if (speedup <= result.speedup) continue;
      result.speedup = speedup;
      result.length = length;
      result.tokens = tokens;
      result.verify = costs_[i].verify[l];
    }
    return result;
  }

  const std::vector<app::DecodeCase>& cases_;
  const std::vector<ContextAcceptance>& acceptance_;
  const ContextBenchPlan& plan_;
  int64_t context_;
  ThreadTeam& team_;
  DecoderWorkspace workspace_;
  std::vector<Costs> costs_;
  std::vector<std::unique_ptr<SparseCache>> views_;
  bool in_turns_ = true;
};

}  // namespace

double ContextAcceptance::tokens_per_step(int32_t length) const {
  double tokens = 1.0;
  for (size_t d = 0; d < std::min(survival.size(), static_cast<size_t>(length)); ++d) tokens += survival[d];
  return tokens;
}

void require_contexts(const std::vector<app::DecodeCase>& cases, const ContextBenchPlan& plan) {
  ThreadTeam team(1);
  const std::vector<ContextAcceptance> unknown;
  for (const int64_t context : plan.contexts) Context(cases, unknown, plan, context, team).require_room();
}

std::vector<ContextResult> bench_contexts(const std::vector<app::DecodeCase>& cases,
                                          const std::vector<ContextAcceptance>& acceptance,
                                          const ContextBenchPlan& plan,
                                          const std::function<void(double)>& progress) {
  ThreadTeam team(plan.threads > 0 ? plan.threads : hardware_threads());
  std::vector<ContextResult> results;
  for (size_t i = 0; i < plan.contexts.size(); ++i) {
    Context(cases, acceptance, plan, plan.contexts[i], team).measure(results);
    progress(static_cast<double>(i + 1) / static_cast<double>(plan.contexts.size()));
  }
  return results;
}

}  // namespace verbatim::bench
