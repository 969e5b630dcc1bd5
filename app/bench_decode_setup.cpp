#include "bench_decode_setup.h"

#include <fmt/format.h>

#include <set>
#include <string>

#include "command_line.h"
#include "fail.h"
#include "interrupt.h"
#include "model_options.h"
#include "progress.h"
#include "stats_report.h"
#include "text_io.h"

namespace verbatim::app {

namespace {

using nlohmann::ordered_json;

void refuse_repetition(const char* what, const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) fail(ErrorKind::kUsage, "two {} are called {}", what, one_line(name));
  }
}

std::vector<PromptSet> read_sets(const DecodeBenchOptions& options) {
  std::vector<PromptSet> sets;
  std::vector<std::string> names;
  for (const std::string& file : options.prompt_files) {
    names.push_back(sets.emplace_back(read_prompts(file, options.limit)).name);
  }
  refuse_repetition("prompt files", names);
  return sets;
}

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

ordered_json seconds_json(const Stats& stats) {
  return {{"prefill", stats.seconds_prefill},    {"decode", stats.seconds_decode},
          {"draft", stats.seconds_draft},        {"verify", stats.seconds_verify},
          {"sampling", stats.seconds_sampling},  {"planning", stats.seconds_planning},
          {"overhead", stats.seconds_overhead()}};
}

ordered_json levels_json(const std::vector<LevelStats>& levels) {
  ordered_json list = ordered_json::array();
  for (const LevelStats& level : levels) {
    list.push_back({{"drafted", level.drafted},
                    {"accepted", level.accepted},
                    {"acceptance_rate", share(level.accepted, level.drafted)},
                    {"passes", level.passes},
                    {"seconds", level.seconds}});
  }
  return list;
}

ordered_json depths_json(const std::vector<DepthStats>& depths) {
  ordered_json list = ordered_json::array();
  for (const DepthStats& depth : depths) {
    list.push_back({{"drafted", depth.drafted},
                    {"accepted", depth.accepted},
                    {"acceptance_rate", share(depth.accepted, depth.drafted)}});
  }
  return list;
}

}  // namespace

void add_decode_bench(Command command, DecodeBenchOptions& options) {
  command.add_option("MODEL", options.model, "A directory in Hugging Face layout, a .gguf or a .vbt file")
      .required();
  command
      .add_list("--prompts", options.prompt_files,
                "JSON lines with a prompt, a question or turns each; several with commas between")
      .required()
      .type_name("FILES");
  command.add_option("--limit", options.limit, "Take only the first prompts of each file")
      .range(int64_t{1}, int64_t{1} << 24);
  command.add_option("-n,--max-tokens", options.generate.max_tokens, "Tokens to generate for each prompt")
      .show_default()
      .range(int64_t{2}, int64_t{1} << 24);
  command.add_option("--draft-model", options.draft_model,
                     "The model that recipes with another one draft with");
  command.add_option("--threads", options.threads, "Threads to compute with; without it one per core")
      .range(1, 4096);
  add_portable(command);
  command.add_flag("--ignore-eos", options.generate.ignore_eos, "Go on after the end-of-sequence token");
  command.add_flag("--json", options.json, "Print one JSON object");
  add_sampling(command, options.generate.sampling);
}

DecodeMeasurement measure_decoding(const DecodeBenchOptions& options, std::vector<Recipe> recipes,
                                   const std::function<void(const std::vector<DecodeCase>&)>& loaded) {
  std::erase_if(recipes, [](const Recipe& recipe) { return recipe.name == "plain"; });
  recipes.insert(recipes.begin(), load_recipe("plain"));
  std::vector<std::string> names;
  for (const Recipe& recipe : recipes) names.push_back(recipe.name);
  refuse_repetition("recipes", names);
  const std::vector<PromptSet> prompts = read_sets(options);

  DecodeMeasurement measured;
  measured.cases = load_cases(options.model, recipes, options.draft_model, options.threads);
  if (loaded) loaded(measured.cases);
  const Model& model = measured.cases.front().model;
  measured.weights = model.origin();
  for (const PromptSet& set : prompts) {
    measured.sets.push_back(encode_prompts(set, model, options.generate.max_tokens));
  }
  measured.machine = describe_machine();
  if (options.threads > 0) measured.machine.threads = options.threads;
  if (measured.sets.empty()) return measured;
  DecodeRunOptions run{.generate = options.generate,
                       .threads = measured.machine.threads,
                       .perplexity = options.perplexity,
                       .progress = [](double fraction) { show_progress("decoding", fraction); }};
  run.generate.cancelled = interrupted;
  auto results = run_cases(measured.cases, measured.sets, run);
  end_progress();
  if (!results) throw Exit{kInterruptedExit};
  measured.results = std::move(*results);
  return measured;
}

ordered_json conditions_json(const DecodeBenchOptions& options, const DecodeMeasurement& measured) {
  ordered_json object = {{"model", options.model},          {"weights", measured.weights},
                         {"draft_model", nullptr},          {"cpu", measured.machine.cpu},
                         {"isa", measured.machine.kernels}, {"threads", measured.machine.threads}};
  if (!options.draft_model.empty()) object["draft_model"] = options.draft_model;
  if (measured.sets.empty()) return object;
  const SamplingOptions& sampling = options.generate.sampling;
  object.update({{"temperature", as_written(sampling.temperature)},
                 {"top_k", sampling.top_k},
                 {"top_p", as_written(sampling.top_p)},
                 {"min_p", as_written(sampling.min_p)},
                 {"repetition_penalty", as_written(sampling.repetition_penalty)},
                 {"presence_penalty", as_written(sampling.presence_penalty)},
                 {"frequency_penalty", as_written(sampling.frequency_penalty)},
                 {"seed", sampling.seed},
                 {"ignore_eos", options.generate.ignore_eos},
                 {"tokens", options.generate.max_tokens}});
  return object;
}

std::string conditions_text(const DecodeBenchOptions& options, const DecodeMeasurement& measured) {
  std::string out =
      fmt::format("{}; {}; {} {}\n{}, {} weights", measured.machine.cpu, measured.machine.kernels,
                  measured.machine.threads, measured.machine.threads == 1 ? "thread" : "threads",
                  one_line(options.model), measured.weights);
  if (!measured.sets.empty()) {
    out += fmt::format("; temperature {}, at most {} tokens for each prompt",
                       options.generate.sampling.temperature, options.generate.max_tokens);
  }
  return out + "\n";
}

ordered_json result_json(const DecodeMeasurement& measured, size_t set, size_t at) {
  const DecodeResult& result = measured.results[set][at];
  const DecodeCase& measured_case = measured.cases[at];
  const Recipe& recipe = measured_case.recipe;
  const Stats& total = result.total;
  ordered_json object = {{"recipe", recipe.name},
                         {"prompt_set", measured.sets[set].name},
                         {"prompts", result.prompts},
                         {"prompts_timed", result.timed},
                         {"prompts_cut", measured.sets[set].cut},
                         {"tokens_per_second", result.tokens_per_second},
                         {"speedup", result.speedup},
                         {"acceptance_rate", total.acceptance_rate()},
                         {"mean_accepted_length", total.mean_accepted_length()},
                         {"identical", result.identical},
                         {"agreement", result.agreement},
                         {"perplexity", nullptr},
                         {"lossless", recipe.lossless()},
                         {"guarantee", recipe.guarantee()},
                         {"weight_bytes", measured_case.weight_bytes},
                         {"prompt_tokens", total.prompt_tokens},
                         {"generated_tokens", total.generated_tokens},
                         {"drafted", total.drafted},
                         {"accepted", total.accepted},
                         {"target_passes", total.target_passes},
                         {"draft_passes", total.draft_passes},
                         {"fallback_percent", percent_of_tokens(total.fallbacks, total)},
                         {"rollback_percent", percent_of_tokens(total.rollbacks, total)},
                         {"seconds", seconds_json(total)},
                         {"levels", levels_json(total.levels)},
                         {"depths", depths_json(total.depths)},
                         {"lengths", total.lengths}};
  if (result.perplexity > 0) object["perplexity"] = result.perplexity;
  add_planning(object, total);
  return object;
}

double as_written(float value) {
  return std::stod(fmt::format("{}", value));
}

double percent_of_tokens(int64_t count, const Stats& stats) {
  return 100.0 * share(count, stats.generated_tokens);
}

}  // namespace verbatim::app
