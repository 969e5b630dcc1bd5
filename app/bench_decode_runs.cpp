#include "bench_decode_runs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "fail.h"

namespace verbatim::app {

namespace {

constexpr int64_t kWarmUpTokens = 8;
// At most so many generations of other cases from one of plain to the next: what a speed is divided by must
// be of about the same time.
constexpr int kMostBetween = 4;

void add(DepthStats& sum, const DepthStats& more) {
  sum.drafted += more.drafted;
  sum.accepted += more.accepted;
}

void add(LevelStats& sum, const LevelStats& more) {
  sum.drafted += more.drafted;
  sum.accepted += more.accepted;
  sum.passes += more.passes;
  sum.seconds += more.seconds;
  sum.diagnostics.seconds_passes += more.diagnostics.seconds_passes;
  sum.diagnostics.table_seconds += more.diagnostics.table_seconds;
}

void add(int64_t& sum, int64_t more) {
  sum += more;
}

template <typename T>
void add_each(std::vector<T>& sums, const std::vector<T>& more) {
  sums.resize(std::max(sums.size(), more.size()));
  for (size_t i = 0; i < more.size(); ++i) add(sums[i], more[i]);
}

/// A mean of numbers that are all positive.
class GeometricMean {
 public:
  void add(double value) {
    logs_ += std::log(value);
    ++count_;
  }
  int64_t count() const { return count_; }
  double value() const { return count_ == 0 ? 0.0 : std::exp(logs_ / static_cast<double>(count_)); }

 private:
  double logs_ = 0;
  int64_t count_ = 0;
};

/// The cases of one prompt in the order in which they run, case `first` at the beginning, with more of plain
/// (0) among them where there are many.
std::vector<size_t> schedule(size_t cases, size_t first) {
  std::vector<size_t> order;
  int since_plain = 0;
  for (size_t i = 0; i < cases; ++i) {
    const size_t at = (first + i) % cases;
    if (at != 0 && since_plain == kMostBetween) {
      order.push_back(0);
      since_plain = 0;
    }
    order.push_back(at);
    since_plain = at == 0 ? 0 : since_plain + 1;
  }
  return order;
}

/// The speed of plain around a place in the schedule: the geometric mean of the nearest run before it and the
/// nearest after it, as far as there are any.
double plain_speed_around(const std::vector<size_t>& order, const std::vector<double>& speeds, size_t place) {
  GeometricMean mean;
  for (size_t i = place; i-- > 0;) {
    if (order[i] != 0) continue;
    if (speeds[i] > 0) mean.add(speeds[i]);
    break;
  }
  for (size_t i = place + 1; i < order.size(); ++i) {
    if (order[i] != 0) continue;
    if (speeds[i] > 0) mean.add(speeds[i]);
    break;
  }
  return mean.value();
}

/// The negative log likelihood of an output under a model's own weights.
double output_nll(const Model& model, const std::vector<int32_t>& prompt, const std::vector<int32_t>& output,
                  int32_t threads) {
  std::vector<int32_t> tokens = prompt;
  tokens.insert(tokens.end(), output.begin(), output.end());
  const std::vector<double> nlls = negative_log_likelihoods(model, tokens, threads);
  return std::accumulate(nlls.end() - std::ssize(output), nlls.end(), 0.0);
}

/// Gathers the outputs of one case on one prompt set.
class Tally {
 public:
  /// `speed` in tokens per second, `plain_speed` that of plain at about the same time; 0 where there was
  /// none.
  void add_output(const GenerateResult& output, const GenerateResult& plain, double speed, double plain_speed,
                  double nll) {
    ++result_.prompts;
    verbatim::app::add(result_.total, output.stats);
    result_.generated.push_back(output.stats.generated_tokens);
    result_.identical = result_.identical && output.tokens == plain.tokens;
    const size_t common = std::min(output.tokens.size(), plain.tokens.size());
    for (size_t i = 0; i < common; ++i) same_ += output.tokens[i] == plain.tokens[i] ? 1 : 0;
    positions_ += static_cast<int64_t>(std::max(output.tokens.size(), plain.tokens.size()));
    nll_ += nll;
    if (speed <= 0 || plain_speed <= 0) return;
    speed_.add(speed);
    speedup_.add(speed / plain_speed);
  }

  DecodeResult result(bool perplexity) const {
    DecodeResult result = result_;
    result.timed = speed_.count();
    result.tokens_per_second = speed_.value();
    result.speedup = speedup_.value();
    if (positions_ > 0) result.agreement = static_cast<double>(same_) / static_cast<double>(positions_);
    const auto tokens = static_cast<double>(result.total.generated_tokens);
    if (perplexity && tokens > 0) result.perplexity = std::exp(nll_ / tokens);
    return result;
  }

 private:
  DecodeResult result_;
  int64_t same_ = 0;
  int64_t positions_ = 0;
  double nll_ = 0;
  GeometricMean speed_;
  GeometricMean speedup_;
};

/// The cases, each prompt in a session of its own: what drafters learnt from other texts would help here and
/// not in the field.
class Runner {
 public:
  Runner(const std::vector<DecodeCase>& cases, int64_t capacity, const DecodeRunOptions& options)
      : cases_(cases), capacity_(capacity), options_(options) {}

  /// The first call finds cold weights, and a planner that has yet to measure costs.
  void warm_up(int32_t token) {
    GenerateOptions generate = options_.generate;
    generate.max_tokens = std::min(generate.max_tokens, kWarmUpTokens);
    generate.ignore_eos = true;
    for (size_t i = 0; i < cases_.size() && !cancelled(); ++i) run(i, {token}, generate);
  }

  /// All cases on one prompt, beginning with case `first`. False when it was cancelled.
  bool run_prompt(const std::vector<int32_t>& prompt, size_t first, std::vector<Tally>& tallies,
                  const std::function<void()>& advance) {
    std::vector<GenerateResult> outputs(cases_.size());
    references_.clear();
    const std::vector<size_t> order = schedule(cases_.size(), first);
    std::vector<double> speeds;
    for (const size_t at : order) {
      GenerateResult output = run(at, prompt, options_.generate);
      if (cancelled()) return false;
      speeds.push_back(output.stats.tokens_per_second());
      const bool again = !outputs[at].tokens.empty();
      if (!again) outputs[at] = std::move(output);
      if (!again) advance();
    }
    for (size_t at = 1; at < cases_.size() && !cancelled(); ++at) add_reference(at, prompt);
    if (cancelled()) return false;
    compare(prompt, outputs, order, speeds, tallies);
    return true;
  }

  bool cancelled() const { return options_.generate.cancelled && options_.generate.cancelled(); }

 private:
  void compare(const std::vector<int32_t>& prompt, const std::vector<GenerateResult>& outputs,
               const std::vector<size_t>& order, const std::vector<double>& speeds,
               std::vector<Tally>& tallies) {
    const GenerateResult& plain = outputs.front();
    const auto nll = [&](const GenerateResult& output) {
      if (!options_.perplexity) return 0.0;
      return output_nll(cases_.front().model, prompt, output.tokens, options_.threads);
    };
    const double plain_nll = nll(plain);
    GeometricMean plain_speed;
    for (size_t place = 0; place < order.size(); ++place) {
      if (order[place] == 0) {
        if (speeds[place] > 0) plain_speed.add(speeds[place]);
        continue;
      }
      const GenerateResult& output = outputs[order[place]];
      const auto reference = references_.find(cache_name(cases_[order[place]].recipe.cache));
      tallies[order[place]].add_output(output, reference != references_.end() ? reference->second : plain,
                                       speeds[place], plain_speed_around(order, speeds, place),
                                       output.tokens != plain.tokens ? nll(output) : plain_nll);
    }
    tallies.front().add_output(plain, plain, plain_speed.value(), plain_speed.value(), plain_nll);
  }

  /// What plain decoding says with the cache of a case, where that is another than plain's own.
  void add_reference(size_t at, const std::vector<int32_t>& prompt) {
    const DecodeCase& one = cases_[at];
    const std::string name = cache_name(one.recipe.cache);
    if (one.recipe.cache == cases_.front().recipe.cache || references_.contains(name)) return;
    Recipe plain = cases_.front().recipe;
    plain.cache = one.recipe.cache;
    Session session(one.model, capacity_, options_.threads);
    references_[name] = session.generate(prompt, options_.generate, plain);
  }

  GenerateResult run(size_t at, const std::vector<int32_t>& prompt, const GenerateOptions& generate) {
    const DecodeCase& one = cases_[at];
    Session session(one.model, capacity_, options_.threads);
    if (one.draft_model) session.set_draft_model(*one.draft_model);
    session.prepare(one.recipe);
    return session.generate(prompt, generate, one.recipe);
  }

  const std::vector<DecodeCase>& cases_;
  int64_t capacity_;
  const DecodeRunOptions& options_;
  std::map<std::string, GenerateResult> references_;  // of one prompt, by the cache's name
};

}  // namespace

void add(Stats& sum, const Stats& more) {
  sum.prompt_tokens += more.prompt_tokens;
  sum.generated_tokens += more.generated_tokens;
  sum.drafted += more.drafted;
  sum.accepted += more.accepted;
  sum.target_passes += more.target_passes;
  sum.draft_passes += more.draft_passes;
  sum.fallbacks += more.fallbacks;
  sum.rollbacks += more.rollbacks;
  sum.seconds_prefill += more.seconds_prefill;
  sum.seconds_decode += more.seconds_decode;
  sum.seconds_draft += more.seconds_draft;
  sum.seconds_verify += more.seconds_verify;
  sum.seconds_sampling += more.seconds_sampling;
  sum.seconds_planning += more.seconds_planning;
  sum.diagnostics.expected_draft += more.diagnostics.expected_draft;
  sum.diagnostics.expected_verify += more.diagnostics.expected_verify;
  sum.diagnostics.table_draft += more.diagnostics.table_draft;
  sum.diagnostics.table_verify += more.diagnostics.table_verify;
  sum.diagnostics.seconds_draft_passes += more.diagnostics.seconds_draft_passes;
  add_each(sum.levels, more.levels);
  add_each(sum.depths, more.depths);
  add_each(sum.lengths, more.lengths);
}

TokenPrompts encode_prompts(const PromptSet& set, const Model& model, int64_t max_tokens) {
  const auto beginning = static_cast<int64_t>(model.encode("").size());
  const int64_t room = model.context() - max_tokens;
  if (room <= beginning) {
    fail(ErrorKind::kUsage, "the model's context of {} tokens has no room for prompts beside {} more",
         model.context(), max_tokens);
  }
  TokenPrompts encoded{.name = set.name, .prompts = {}};
  for (const std::string& prompt : set.prompts) {
    std::vector<int32_t>& tokens = encoded.prompts.emplace_back(model.encode(prompt));
    if (tokens.empty()) bad_input("a prompt of {} has no tokens for this model", set.name);
    const int64_t excess = static_cast<int64_t>(tokens.size()) - room;
    if (excess <= 0) continue;
    tokens.erase(tokens.begin() + beginning, tokens.begin() + beginning + excess);
    ++encoded.cut;
  }
  return encoded;
}

std::optional<std::vector<std::vector<DecodeResult>>> run_cases(const std::vector<DecodeCase>& cases,
                                                                const std::vector<TokenPrompts>& sets,
                                                                const DecodeRunOptions& options) {
  size_t prompts = 0;
  size_t longest = 0;
  for (const TokenPrompts& set : sets) {
    prompts += set.prompts.size();
    for (const std::vector<int32_t>& prompt : set.prompts) longest = std::max(longest, prompt.size());
  }
  Runner runner(cases, static_cast<int64_t>(longest) + options.generate.max_tokens, options);
  runner.warm_up(sets.front().prompts.front().front());
  size_t generations = 0;
  const auto advance = [&] {
    ++generations;
    if (!options.progress) return;
    options.progress(static_cast<double>(generations) / static_cast<double>(prompts * cases.size()));
  };
  std::vector<std::vector<DecodeResult>> results;
  size_t first = 0;
  for (const TokenPrompts& set : sets) {
    std::vector<Tally> tallies(cases.size());
    for (const std::vector<int32_t>& prompt : set.prompts) {
      if (runner.cancelled() || !runner.run_prompt(prompt, first++, tallies, advance)) return std::nullopt;
    }
    std::vector<DecodeResult>& of_set = results.emplace_back();
    for (const Tally& tally : tallies) of_set.push_back(tally.result(options.perplexity));
  }
  return results;
}

}  // namespace verbatim::app
