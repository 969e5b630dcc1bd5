#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "app/command_line.h"
#include "app/model_options.h"
#include "app/progress.h"
#include "app/text_io.h"
#include "base/available_memory.h"
#include "base/cpu.h"
#include "base/matrix.h"
#include "base/processors.h"
#include "bench/bandwidth_sweep.h"
#include "bench/commands.h"
#include "bench/filled_cache.h"
#include "engine/memory_check.h"
#include "kernels/dispatch.h"

namespace verbatim::bench {

namespace {

using nlohmann::ordered_json;

struct Options {
  std::vector<int64_t> contexts = {16384, 65536, 262144};
  std::vector<int64_t> groups = {1, 4};
  int64_t head_dim = 128;
  int64_t kv_heads = 8;
  int32_t threads = 0;
  double seconds = 1.0;
  bool quick = false;
  bool json = false;
};

/// A way to store the past and to read it.
struct Kind {
  const char* cache;
  const char* reading;
  CachePart part;
};
constexpr Kind kKinds[] = {{"bf16", "full", CachePart::kWhole},
                           {"hierarchical", "full", CachePart::kWhole},
                           {"hierarchical", "draft", CachePart::kDraft},
                           {"int8", "full", CachePart::kWhole},
                           {"f16", "full", CachePart::kWhole}};

/// The attention of one row at the end of a context, in every layer of a cache: together the layers are more
/// than the processor's caches hold.
class Case {
 public:
  Case(const KvCache& cache, const CacheShape& shape, CachePart part, int64_t context, int64_t group,
       ThreadTeam& team)
      : cache_(cache),
        shape_(shape),
        part_(part),
        position_(static_cast<int32_t>(context - 1)),
        group_(group),
        width_(round_up(shape.head_dim, kQueryStep)),
        queries_(static_cast<size_t>(shape.kv_heads * group * width_), to_bfloat16(0.3f)),
        out_(static_cast<size_t>(shape.kv_heads * group * shape.head_dim)),
        scratch_(static_cast<size_t>(team.size())),
        team_(team),
        runs_(cache.bytes_read(context, part)) {
    for (size_t i = 0; i < queries_.size(); ++i) {
      if (static_cast<int64_t>(i) % width_ >= shape.head_dim) queries_[i] = {0};
    }
    for (AttentionScratch& scratch : scratch_) scratch.reserve(group, width_);
  }

  double run() {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t layer = 0; layer < shape_.layers; ++layer) {
      team_.run([&](int member, int size) {
        const int64_t end = shape_.kv_heads * (member + 1) / size;
        for (int64_t head = shape_.kv_heads * member / size; head < end; ++head) {
          attend_head(layer, head, scratch_[static_cast<size_t>(member)]);
        }
      });
    }
    return seconds_since(start);
  }

  TimedRuns& runs() { return runs_; }

 private:
  void attend_head(int64_t layer, int64_t head, AttentionScratch& scratch) {
    attend({.queries = queries_.data() + head * group_ * width_,
            .positions = &position_,
            .rows = 1,
            .group = group_,
            .head_dim = shape_.head_dim,
            .width = width_,
            .window = 0,
            .scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim)),
            .cache = cache_.head(layer, head, part_),
            .out = out_.data() + head * group_ * shape_.head_dim,
            .out_stride = group_ * shape_.head_dim},
           scratch);
  }

  const KvCache& cache_;
  CacheShape shape_;
  CachePart part_;
  int32_t position_;
  int64_t group_;
  int64_t width_;
  std::vector<BFloat16> queries_;
  std::vector<float> out_;
  std::vector<AttentionScratch> scratch_;
  ThreadTeam& team_;
  TimedRuns runs_;
};

struct Result {
  int64_t context;
  int64_t group;
  Kind kind;
  int rounds;
  double seconds;  ///< of one layer
  double gbs;
  double fraction;
  double speedup;  ///< over BF16
};

/// Refuses a context whose caches do not fit into memory together.
void require_room(const CacheShape& shape, int64_t context) {
  ContextMemory memory{.tokens = context};
  std::set<std::string> counted;
  for (const Kind& kind : kKinds) {
    if (counted.insert(kind.cache).second) {
      memory.cache += cache_bytes(parse_cache(kind.cache, "bench"), shape, context);
    }
  }
  require_memory(memory, available_memory());
}

/// Measures all ways to read one context, for each number of query heads.
void measure(const Options& options, int64_t context, BandwidthSweep& sweep, ThreadTeam& team,
             std::vector<Result>& results) {
  CacheShape shape{1, options.kv_heads, options.head_dim};
  require_room(shape, context);
  // So many layers that even four bits of all of them are more than the last-level cache holds.
  const int64_t upper_bytes = make_cache(parse_cache("hierarchical", "bench"), shape, context)
                                  ->bytes_read(context, CachePart::kDraft);
  shape.layers = options.quick ? 1 : std::max<int64_t>(1, default_working_set() / 2 / upper_bytes);
  require_room(shape, context);
  std::vector<std::pair<std::string, std::unique_ptr<KvCache>>> caches;
  const auto cache = [&](const std::string& name) -> const KvCache& {
    const auto found = std::find_if(caches.begin(), caches.end(), [&](auto& c) { return c.first == name; });
    if (found != caches.end()) return *found->second;
    return *caches.emplace_back(name, filled_cache(parse_cache(name, "bench"), shape, context, 0, team))
                .second;
  };
  std::vector<Case> cases;
  for (const int64_t group : options.groups) {
    for (const Kind& kind : kKinds) {
      cases.emplace_back(cache(kind.cache), shape, kind.part, context, group, team).run();
    }
  }
  alternate(cases, options.quick ? 0.0 : options.seconds, options.quick ? 3 : 7, sweep);
  for (size_t i = 0; i < cases.size(); ++i) {
    const TimedRuns& runs = cases[i].runs();
    const TimedRuns& bf16 = cases[i / std::size(kKinds) * std::size(kKinds)].runs();
    results.push_back({.context = context,
                       .group = options.groups[i / std::size(kKinds)],
                       .kind = kKinds[i % std::size(kKinds)],
                       .rounds = runs.count(),
                       .seconds = runs.seconds() / static_cast<double>(shape.layers),
                       .gbs = runs.gbs(),
                       .fraction = runs.fraction(),
                       .speedup = 1.0 / runs.seconds_relative_to(bf16)});
  }
}

void print(const Options& options, const ThreadTeam& team, const BandwidthSweep& sweep,
           const std::vector<Result>& results) {
  if (options.json) {
    ordered_json object = {{"cpu", cpu_features().model_name}, {"isa", kernels().name},
                           {"threads", team.size()},           {"head_dim", options.head_dim},
                           {"kv_heads", options.kv_heads},     {"read_bandwidth_gbs", sweep.median_gbs()},
                           {"results", ordered_json::array()}};
    for (const Result& result : results) {
      object["results"].push_back({{"context", result.context},
                                   {"query_heads_per_kv_head", result.group},
                                   {"cache", result.kind.cache},
                                   {"reading", result.kind.reading},
                                   {"rounds", result.rounds},
                                   {"seconds", result.seconds},
                                   {"gbs", result.gbs},
                                   {"fraction_of_bandwidth", result.fraction},
                                   {"speedup", result.speedup}});
    }
    app::write_out(object.dump(2) + "\n");
    return;
  }
  std::string out = fmt::format(
      "{}, {}, {} threads, {:.1f} GB/s of reads; {} key-value heads of dimension {}, one row\n\n"
      "{:>9}{:>9}  {:<14}{:<8}{:>10}{:>9}{:>11}{:>10}\n",
      cpu_features().model_name, kernels().name, team.size(), sweep.median_gbs(), options.kv_heads,
      options.head_dim, "context", "queries", "cache", "reading", "ms", "GB/s", "of reads", "speedup");
  for (const Result& result : results) {
    out += fmt::format("{:>9}{:>9}  {:<14}{:<8}{:>10.3f}{:>9.1f}{:>11.2f}{:>10.2f}\n", result.context,
                       result.group, result.kind.cache, result.kind.reading, result.seconds * 1e3, result.gbs,
                       result.fraction, result.speedup);
  }
  app::write_out(out);
}

void bench(const Options& options) {
  ThreadTeam team(options.threads > 0 ? options.threads : hardware_threads());
  BandwidthSweep sweep(options.quick ? int64_t{64} << 20 : default_working_set(), team);
  std::vector<Result> results;
  for (size_t i = 0; i < options.contexts.size(); ++i) {
    app::show_progress("measuring attention",
                       static_cast<double>(i) / static_cast<double>(options.contexts.size()));
    measure(options, options.contexts[i], sweep, team, results);
  }
  app::end_progress();
  print(options, team, sweep, results);
}

}  // namespace

void add_attention(app::Command program) {
  auto options = std::make_shared<Options>();
  app::Command command = program.add_command(
      "attention", "Measure one token's attention over long contexts, for every kind of cache");
  const auto add_sizes = [&](const char* name, std::vector<int64_t>& values, const char* what, int64_t most) {
    command.add_list(name, values, what).type_name("LIST").range(int64_t{1}, most);
  };
  add_sizes("--contexts", options->contexts, "Positions to attend to; without it 16384,65536,262144",
            int64_t{1} << 22);
  add_sizes("--groups", options->groups, "Query heads per key-value head; without it 1,4", 64);
  command.add_option("--head-dim", options->head_dim, "The dimension of a head")
      .range(int64_t{8}, int64_t{256})
      .show_default();
  command.add_option("--kv-heads", options->kv_heads, "Key-value heads")
      .range(int64_t{1}, int64_t{256})
      .show_default();
  command.add_option("--threads", options->threads, "Threads to compute with; without it one per processor")
      .range(1, 4096);
  command.add_option("--seconds", options->seconds, "How long to measure each case")
      .range(0.0, 3600.0)
      .show_default();
  command.add_flag("--quick", options->quick, "Only see that it runs: numbers mean nothing");
  command.add_flag("--json", options->json, "Print one JSON object");
  command.footer(
      "Examples:\n"
      "  verbatim-bench attention\n"
      "  verbatim-bench attention --contexts 32768 --groups 8 --head-dim 64 --json");
  command.callback([options] { bench(*options); });
}

}  // namespace verbatim::bench
