#include "bench/passes_measurement.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "bench/bandwidth_sweep.h"
#include "bench/random_weights.h"
#include "kv/dense.h"
#include "model/work.h"

namespace verbatim::bench {

namespace {

/// One sequence of arbitrary tokens, any part of which can be evaluated again and again: each position always
/// has the same token, so that the cache never changes once it is filled.
class BenchSequence {
 public:
  BenchSequence(const Decoder& decoder, const PassKind& kind, int64_t capacity, ThreadTeam& team)
      : decoder_(decoder), kind_(kind), team_(team), cache_(decoder.cache_shape(), capacity) {}

  /// Evaluates positions first .. first + count - 1 in one pass, with logits for the last `logits` of them.
  void evaluate(int64_t first, int64_t count, int64_t logits) { evaluate(first, count, logits, kind_); }

  /// Evaluates these positions in one pass and returns the bytes of the weights that it reads: in a mixture
  /// of experts not of all, but of each matrix once.
  int64_t weight_bytes(int64_t first, int64_t count, int64_t logits) {
    int64_t bytes = 0;
    const std::function<void(const LinearWeight&, Matrix<const float>)> add = [&](const LinearWeight& weight,
                                                                                  Matrix<const float>) {
      bytes += bytes_read(weight, weight.resolve(kind_.reading));
    };
    PassKind kind = kind_;
    kind.inputs = &add;
    evaluate(first, count, logits, kind);
    return bytes;
  }

  /// Evaluates positions 0 .. count - 1 in passes over `chunk` rows, with logits for the last `logits` of
  /// them, at most one.
  void prefill(int64_t count, int64_t chunk, int64_t logits) {
    for (int64_t first = 0; first < count; first += chunk) {
      const int64_t rows = std::min(chunk, count - first);
      evaluate(first, rows, first + rows == count ? logits : 0);
    }
  }

 private:
  void evaluate(int64_t first, int64_t count, int64_t logits, const PassKind& kind) {
    rows_.clear();
    for (int64_t position = first; position < first + count; ++position) {
      rows_.push_back({.sequence = 0,
                       .position = static_cast<int32_t>(position),
                       .token = bench_token(position, decoder_)});
    }
    KvCache* const caches[] = {&cache_};
    decoder_.forward(rows_, kind, caches, count - logits, workspace_, team_);
  }

  const Decoder& decoder_;
  PassKind kind_;
  ThreadTeam& team_;
  DenseCache cache_;
  DecoderWorkspace workspace_;
  std::vector<Row> rows_;
};

/// Some evaluation of the sequence.
class Case {
 public:
  Case(std::function<void()> work, int64_t bytes) : work_(std::move(work)), bytes_(bytes), runs_(bytes) {
    work_();  // workspaces are allocated, pages there
  }

  double run() {
    const auto start = std::chrono::steady_clock::now();
    work_();
    return seconds_since(start);
  }

  int64_t bytes() const { return bytes_; }
  TimedRuns& runs() { return runs_; }
  const TimedRuns& runs() const { return runs_; }

 private:
  std::function<void()> work_;
  int64_t bytes_;
  TimedRuns runs_;
};

std::vector<PassResult> pass_results(const std::vector<Case>& cases, const std::vector<int64_t>& rows) {
  const auto one = std::find(rows.begin(), rows.end(), 1);
  std::vector<PassResult> results;
  for (size_t i = 0; i < cases.size(); ++i) {
    const TimedRuns& runs = cases[i].runs();
    PassResult& result = results.emplace_back(PassResult{.rows = rows[i],
                                                         .rounds = runs.count(),
                                                         .seconds = runs.seconds(),
                                                         .weight_bytes = cases[i].bytes(),
                                                         .gbs = runs.gbs(),
                                                         .bandwidth_gbs = runs.bandwidth_gbs(),
                                                         .fraction = runs.fraction(),
                                                         .to_one_row = std::nullopt});
    if (one != rows.end()) {
      result.to_one_row = runs.seconds_relative_to(cases[static_cast<size_t>(one - rows.begin())].runs());
    }
  }
  return results;
}

PrefillResult prefill_result(const TimedRuns& runs, const PassBenchPlan& plan, const Decoder& decoder) {
  const int64_t tokens = plan.prompt_tokens;
  // Only the last token's logits are wanted.
  const double head = flops_per_row(decoder.weights().head);
  const double operations =
      (flops_per_row(decoder, plan.experts) - head) * static_cast<double>(tokens) + head;
  const double seconds = runs.seconds();
  return {.tokens = tokens,
          .rounds = runs.count(),
          .seconds = seconds,
          .tokens_per_second = static_cast<double>(tokens) / seconds,
          .tflops = operations / seconds * 1e-12};
}

}  // namespace

int32_t bench_token(int64_t position, const Decoder& decoder) {
  return static_cast<int32_t>(position * 7919 % decoder.config().vocab_size);
}

std::vector<double> pass_seconds(const Decoder& decoder, const std::vector<PassCase>& wanted, int64_t context,
                                 double seconds_per_case, int min_rounds, ThreadTeam& team,
                                 const std::function<void(double)>& progress) {
  int64_t most_rows = 1;
  for (const PassCase& one : wanted) most_rows = std::max(most_rows, one.rows);
  std::map<Reading, BenchSequence> sequences;
  for (const PassCase& one : wanted) {
    const auto [sequence, added] =
        sequences.try_emplace(one.reading, decoder, one.reading, context + most_rows, team);
    if (added) sequence->second.prefill(context, context, 0);
  }
  std::vector<Case> cases;
  for (const PassCase& one : wanted) {
    BenchSequence& sequence = sequences.at(one.reading);
    cases.emplace_back([&sequence, context, rows = one.rows] { sequence.evaluate(context, rows, rows); }, 0);
  }
  BandwidthSweep sweep(int64_t{64} << 20, team);
  alternate(cases, seconds_per_case, min_rounds, sweep, progress);
  std::vector<double> seconds;
  for (const Case& one : cases) seconds.push_back(one.runs().seconds());
  return seconds;
}

PassBenchReport measure_passes(const Decoder& decoder, const PassBenchPlan& plan, ThreadTeam& team,
                               const std::function<void(double)>& progress) {
  PassBenchReport report;
  each_matrix(decoder.weights(), [&](const LinearWeight& weight) {
    const Reading resolved = weight.resolve(plan.reading);
    report.weight_bytes += bytes_read(weight, resolved);
    if (std::find(report.readings.begin(), report.readings.end(), resolved) == report.readings.end()) {
      report.readings.push_back(resolved);
    }
  });
  BandwidthSweep sweep(plan.working_set, team);
  const int64_t most_rows = *std::max_element(plan.rows.begin(), plan.rows.end());
  PassKind kind(plan.reading);
  kind.experts = plan.experts;
  BenchSequence sequence(decoder, kind, std::max(plan.context + most_rows, plan.prompt_tokens), team);
  sequence.prefill(plan.context, plan.prefill_chunk, 0);

  std::vector<Case> cases;
  for (const int64_t rows : plan.rows) {
    cases.emplace_back([&, rows] { sequence.evaluate(plan.context, rows, rows); },
                       sequence.weight_bytes(plan.context, rows, rows));
  }
  const double all_cases = static_cast<double>(cases.size()) + (plan.prompt_tokens > 0 ? 1.0 : 0.0);
  const double passes_share = static_cast<double>(cases.size()) / all_cases;
  alternate(cases, plan.seconds, plan.min_rounds, sweep,
            [&](double fraction) { progress(fraction * passes_share); });
  report.passes = pass_results(cases, plan.rows);

  if (plan.prompt_tokens > 0) {
    std::vector<Case> prefill;
    prefill.emplace_back([&] { sequence.prefill(plan.prompt_tokens, plan.prefill_chunk, 1); },
                         report.weight_bytes);
    alternate(prefill, plan.seconds, plan.min_rounds, sweep,
              [&](double fraction) { progress(passes_share + fraction * (1.0 - passes_share)); });
    report.prefill = prefill_result(prefill.front().runs(), plan, decoder);
  }
  report.read_bandwidth_gbs = sweep.median_gbs();
  return report;
}

}  // namespace verbatim::bench
