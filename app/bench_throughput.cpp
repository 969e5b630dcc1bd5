#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench_decode_models.h"
#include "bench_decode_runs.h"
#include "command_line.h"
#include "commands.h"
#include "fail.h"
#include "interrupt.h"
#include "median.h"
#include "model_options.h"
#include "progress.h"
#include "text_io.h"

namespace verbatim::app {

namespace {

struct Options {
  std::string model;
  std::string draft_model;
  std::vector<std::string> recipes;
  std::string baseline = "plain";
  std::vector<int32_t> batches = {1, 8, 16, 32};
  std::string prompts;
  int64_t limit = 0;
  int64_t prompt_tokens = 0;
  int32_t refills = 2;
  int32_t rounds = 1;
  GenerateOptions generate;
  bool every_draft = false;
  int32_t threads = 0;
  bool json = false;
};

/// One run of all requests of a batch.
struct Run {
  double seconds = 0;
  int64_t tokens = 0;
  Stats total;
  EngineStats engine;
  std::vector<std::vector<int32_t>> texts;  // by request
  double tokens_per_second() const { return static_cast<double>(tokens) / seconds; }
};

/// A recipe at a batch: its runs, and how it compares with the baseline's of the same rounds.
struct Cell {
  int32_t batch = 0;
  size_t at = 0;  // the case
  std::vector<Run> runs = {};
  double tokens_per_second = 0;  // median of the rounds
  double speedup = 0;            // likewise of the ratio to the baseline in the same round
  bool identical = true;         // every answer is the baseline's, token for token
};

/// Asks all requests at once, of which `batch` run together and the next follows where one has ended. Nothing
/// when Ctrl-C ended it.
std::optional<Run> run_batch(const DecodeCase& one, const std::vector<std::vector<int32_t>>& prompts,
                             int32_t batch, const Options& options) {
  size_t longest = 0;
  for (const std::vector<int32_t>& prompt : prompts) longest = std::max(longest, prompt.size());
  Engine engine(one.model, {.max_batch = batch,
                            .capacity = static_cast<int64_t>(longest) + options.generate.max_tokens,
                            .prompt_cache = false,
                            .weigh_drafts = !options.every_draft,
                            .threads = options.threads});
  if (one.draft_model) engine.set_draft_model(*one.draft_model);
  engine.prepare(one.recipe, show_measuring);
  Request request{.prompt = prompts.front(), .options = options.generate, .recipe = one.recipe};
  request.options.max_tokens = 4;
  engine.generate(request);  // makes room for passes, wakes threads
  request.options.max_tokens = options.generate.max_tokens;
  const EngineStats before = engine.stats();
  Run run;
  std::vector<TokenStream> streams;
  const auto start = std::chrono::steady_clock::now();
  const int64_t count = int64_t{batch} * options.refills;
  for (int64_t i = 0; i < count; ++i) {
    request.prompt = prompts[static_cast<size_t>(i) % prompts.size()];
    request.options.sampling.seed = options.generate.sampling.seed + static_cast<uint64_t>(i);
    streams.push_back(engine.submit(request));
  }
  for (TokenStream& stream : streams) {
    const GenerateResult result = stream.wait();
    add(run.total, result.stats);
    run.tokens += std::ssize(result.tokens);
    run.texts.push_back(result.tokens);
  }
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (interrupted()) return std::nullopt;
  run.engine = engine.stats();
  const auto since = [](EngineStats::Passes& now, const EngineStats::Passes& then) {
    now = {now.count - then.count, now.rows - then.rows, now.seconds - then.seconds};
  };
  since(run.engine.whole_model, before.whole_model);
  since(run.engine.drafts, before.drafts);
  run.engine.positions_taken -= before.positions_taken;
  run.engine.positions_used -= before.positions_used;
  return run;
}

/// Measures every recipe at every batch, recipes in turns.
std::vector<Cell> measure(const std::vector<DecodeCase>& cases,
                          const std::vector<std::vector<int32_t>>& prompts, const Options& options) {
  std::vector<Cell> cells;
  const auto all = static_cast<double>(options.batches.size() * cases.size()) * options.rounds;
  double done = 0;
  for (const int32_t batch : options.batches) {
    const size_t first = cells.size();
    for (size_t at = 0; at < cases.size(); ++at) cells.push_back({.batch = batch, .at = at});
    for (int32_t round = 0; round < options.rounds; ++round) {
      for (size_t i = 0; i < cases.size(); ++i) {
        const size_t at = (i + static_cast<size_t>(round)) % cases.size();
        show_progress("measuring", done++ / all);
        std::optional<Run> run = run_batch(cases[at], prompts, batch, options);
        if (!run) {
          end_progress();
          throw Exit{kInterruptedExit};
        }
        cells[first + at].runs.push_back(std::move(*run));
      }
    }
    const Cell& baseline = cells[first];
    for (size_t at = 0; at < cases.size(); ++at) {
      Cell& cell = cells[first + at];
      std::vector<double> speeds;
      std::vector<double> ratios;
      for (size_t round = 0; round < cell.runs.size(); ++round) {
        speeds.push_back(cell.runs[round].tokens_per_second());
        ratios.push_back(speeds.back() / baseline.runs[round].tokens_per_second());
        cell.identical = cell.identical && cell.runs[round].texts == baseline.runs[0].texts;
      }
      cell.tokens_per_second = median(speeds);
      cell.speedup = median(ratios);
    }
  }
  end_progress();
  return cells;
}

/// The share of memory in pages of sequences that holds nothing, on average over the passes.
double waste(const EngineStats& stats) {
  if (stats.positions_taken == 0) return 0.0;
  return 1.0 - static_cast<double>(stats.positions_used) / static_cast<double>(stats.positions_taken);
}

double rows_per_pass(const EngineStats::Passes& passes) {
  return passes.count == 0 ? 0.0 : static_cast<double>(passes.rows) / static_cast<double>(passes.count);
}

nlohmann::ordered_json passes_json(const EngineStats::Passes& passes, double flops_per_row) {
  return {
      {"count", passes.count},
      {"rows_per_pass", rows_per_pass(passes)},
      {"seconds", passes.seconds},
      {"tflops",
       passes.seconds > 0 ? static_cast<double>(passes.rows) * flops_per_row / passes.seconds / 1e12 : 0.0}};
}

void print_json(const Options& options, const std::vector<DecodeCase>& cases,
                const std::vector<Cell>& cells) {
  nlohmann::ordered_json object;
  object["model"] = options.model;
  object["weights"] = cases.front().model.origin();
  const MachineReport machine = describe_machine();
  object["cpu"] = machine.cpu;
  object["isa"] = machine.kernels;
  object["threads"] = options.threads > 0 ? options.threads : machine.threads;
  object["prompts"] = options.prompts;
  object["prompt_tokens"] = options.prompt_tokens;
  object["tokens"] = options.generate.max_tokens;
  object["refills"] = options.refills;
  object["rounds"] = options.rounds;
  object["temperature"] = options.generate.sampling.temperature;
  object["weigh_drafts"] = !options.every_draft;
  object["baseline"] = cases.front().recipe.name;
  object["results"] = nlohmann::ordered_json::array();
  for (const Cell& cell : cells) {
    const DecodeCase& one = cases[cell.at];
    const Run& last = cell.runs.back();
    const double flops = flops_per_token(one.model);
    object["results"].push_back({{"recipe", one.recipe.name},
                                 {"batch", cell.batch},
                                 {"requests", last.texts.size()},
                                 {"tokens_per_second", cell.tokens_per_second},
                                 {"speedup", cell.speedup},
                                 {"acceptance_rate", last.total.acceptance_rate()},
                                 {"mean_accepted_length", last.total.mean_accepted_length()},
                                 {"identical", cell.identical},
                                 {"lossless", one.recipe.lossless()},
                                 {"seconds", last.seconds},
                                 {"verify", passes_json(last.engine.whole_model, flops)},
                                 {"draft", passes_json(last.engine.drafts, flops)},
                                 {"cache_waste", waste(last.engine)},
                                 {"preemptions", last.engine.preemptions},
                                 {"weight_bytes", one.weight_bytes}});
  }
  write_out(object.dump(2) + "\n");
}

void print_text(const Options& options, const std::vector<DecodeCase>& cases,
                const std::vector<Cell>& cells) {
  const MachineReport machine = describe_machine();
  std::string out = fmt::format("{}, {} weights, {}, {}\n", one_line(options.model),
                                cases.front().model.origin(), machine.cpu, machine.kernels);
  size_t width = 8;
  for (const DecodeCase& one : cases) width = std::max(width, one.recipe.name.size() + 2);
  int32_t batch = 0;
  for (const Cell& cell : cells) {
    const DecodeCase& one = cases[cell.at];
    const Run& last = cell.runs.back();
    if (cell.batch != batch) {
      batch = cell.batch;
      out += fmt::format(
          "\nbatch {}, {} requests\n  {:<{}}{:>10}{:>9}{:>10}{:>10}{:>12}{:>11}{:>11}{:>8}{:>7}\n", batch,
          last.texts.size(), "recipe", width, "tokens/s", "speedup", "accepted", "per pass", "rows/pass",
          "drafting", "verifying", "waste", "same");
    }
    out += fmt::format(
        "  {:<{}}{:>10.1f}{:>9.2f}{:>10}{:>10.2f}{:>12.1f}{:>9.2f} s{:>9.2f} s{:>6.1f} %{:>7}\n",
        one_line(one.recipe.name), width, cell.tokens_per_second, cell.speedup,
        last.total.drafted > 0 ? fmt::format("{:.0f} %", 100.0 * last.total.acceptance_rate()) : "-",
        last.total.mean_accepted_length(), rows_per_pass(last.engine.whole_model), last.engine.drafts.seconds,
        last.engine.whole_model.seconds, 100.0 * waste(last.engine), cell.identical ? "yes" : "no");
  }
  write_out(out);
}

void bench(Options& options) {
  std::vector<Recipe> recipes = {load_recipe(options.baseline)};
  for (const std::string& name : options.recipes) {
    Recipe recipe = load_recipe(name);
    const bool known = std::any_of(recipes.begin(), recipes.end(),
                                   [&](const Recipe& other) { return other.name == recipe.name; });
    if (!known) recipes.push_back(std::move(recipe));
  }
  options.generate.ignore_eos = true;  // all answers are of one length
  options.generate.cancelled = interrupted;
  const InterruptGuard guard;
  const std::vector<DecodeCase> cases =
      load_cases(options.model, recipes, options.draft_model, options.threads);
  const PromptSet set = read_prompts(options.prompts, options.limit);
  std::vector<std::vector<int32_t>> prompts =
      encode_prompts(set, cases.front().model, options.generate.max_tokens).prompts;
  if (options.prompt_tokens > 0) {
    for (std::vector<int32_t>& prompt : prompts) {
      prompt.resize(std::min(prompt.size(), static_cast<size_t>(options.prompt_tokens)));
    }
  }
  const std::vector<Cell> cells = measure(cases, prompts, options);
  options.json ? print_json(options, cases, cells) : print_text(options, cases, cells);
  for (const Cell& cell : cells) {
    const Recipe& recipe = cases[cell.at].recipe;
    if (cell.identical || !recipe.lossless()) continue;
    if (verifying_reading(cases[cell.at]) != verifying_reading(cases.front())) continue;
    bad_input("the answers of {} are not those of {}: that is a defect in Verbatim, please report it",
              one_line(recipe.name), one_line(cases.front().recipe.name));
  }
}

}  // namespace

void add_bench_throughput(Command bench_group) {
  auto options = std::make_shared<Options>();
  Command command = bench_group.add_command("throughput", "Measure recipes on many sequences at once");
  command.add_option("model", options->model, "A folder, .gguf or .vbt file").required().type_name("MODEL");
  command.add_list("--recipes", options->recipes, "Names from `verbatim recipes` or .toml files").required();
  command.add_option("--baseline", options->baseline, "The recipe that the others are compared with")
      .show_default();
  command.add_list("--batch", options->batches, "How many sequences run at once")
      .show_default()
      .range(1, 1024);
  command.add_option("--prompts", options->prompts, "A JSONL file of prompts").required().type_name("FILE");
  command.add_option("--limit", options->limit, "Take the first so many prompts; 0: all")
      .range(int64_t{0}, int64_t{1} << 24);
  command.add_option("--prompt-tokens", options->prompt_tokens, "Cut prompts to so many tokens; 0: whole")
      .range(int64_t{0}, int64_t{1} << 24);
  command
      .add_option("--refills", options->refills,
                  "Requests for each place in the batch: where one ends the next begins")
      .show_default()
      .range(1, 1000);
  command.add_option("--rounds", options->rounds, "Measure so often, in turns, and take medians")
      .show_default()
      .range(1, 1000);
  command.add_option("-n,--max-tokens", options->generate.max_tokens, "Tokens of each answer")
      .show_default()
      .range(int64_t{1}, int64_t{1} << 20);
  command.add_flag("--every-draft", options->every_draft,
                   "Draft by the recipes' own rules, even where that costs the batch more than it brings");
  command.add_option("--draft-model", options->draft_model, "The model that recipes draft with")
      .type_name("MODEL");
  command.add_option("--threads", options->threads, "Threads to compute with; 0: one per core")
      .range(0, 4096);
  add_portable(command);
  add_sampling(command, options->generate.sampling);
  command.add_flag("--json", options->json, "Print one JSON object");
  command.footer(
      "Examples:\n"
      "  verbatim bench throughput models/target --recipes ml-specqd --prompts code.jsonl -n 64\n"
      "  verbatim bench throughput big --recipes ml-specqd,speq --batch 1,8 --prompts code.jsonl --json");
  command.callback([options] { bench(*options); });
}

}  // namespace verbatim::app
