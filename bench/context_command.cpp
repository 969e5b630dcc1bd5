#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "app/bench_decode_setup.h"
#include "app/command_line.h"
#include "app/interrupt.h"
#include "app/memory_units.h"
#include "app/model_options.h"
#include "app/progress.h"
#include "app/text_io.h"
#include "base/error.h"
#include "base/new_folder.h"
#include "bench/commands.h"
#include "bench/context_acceptance.h"
#include "bench/context_measurement.h"
#include "bench/plot.h"

namespace verbatim::bench {

namespace {

using nlohmann::ordered_json;

struct Options {
  app::DecodeBenchOptions decode;
  std::vector<std::string> recipes = {"quantspec", "quantspec-kv", "quantspec-weights"};
  ContextBenchPlan plan{.contexts = {4096, 16384, 32768, 65536}, .lengths = {1, 2, 3, 4, 6}};
  std::string acceptance;  ///< a file to take it from
  std::string folder;
};

/// The recipes as they come. Each one's own draft length joins the plan.
std::vector<Recipe> shipped_recipes(Options& options) {
  std::vector<Recipe> recipes;
  options.plan.shipped = {0};  // plain's
  for (const std::string& name : options.recipes) {
    Recipe& recipe = recipes.emplace_back(load_recipe(name));
    const bool fits = recipe.levels.size() == 1 && recipe.levels.front().kind == DraftLevel::Kind::kSelf;
    const bool whole = fits && recipe.levels.front().layers == 0 && recipe.levels.front().experts == 0 &&
                       recipe.levels.front().vocabulary == 0;
    if (!whole || recipe.planned) {
      fail(ErrorKind::kUsage, "the recipe {} is not of the kind that this measures: one level of kind self",
           recipe.name);
    }
    const int32_t shipped = recipe.levels.front().length;
    options.plan.shipped.push_back(shipped);
    std::vector<int32_t>& lengths = options.plan.lengths;
    if (std::find(lengths.begin(), lengths.end(), shipped) == lengths.end()) lengths.push_back(shipped);
  }
  std::sort(options.plan.lengths.begin(), options.plan.lengths.end());
  return recipes;
}

/// The recipes as they are measured: always drafting as deep as the longest length, so that every depth is
/// seen on all text.
std::vector<Recipe> measured_recipes(Options& options) {
  std::vector<Recipe> recipes = shipped_recipes(options);
  for (Recipe& recipe : recipes) {
    DraftLevel& level = recipe.levels.front();
    level.length = *std::max_element(options.plan.lengths.begin(), options.plan.lengths.end());
    level.threshold = 0.0f;
    level.breadth = 1;
  }
  return recipes;
}

ContextAcceptance acceptance_of(const Stats& stats) {
  ContextAcceptance acceptance;
  for (const DepthStats& depth : stats.depths) {
    acceptance.survival.push_back(
        depth.drafted == 0 ? 0.0 : static_cast<double>(depth.accepted) / static_cast<double>(depth.drafted));
  }
  return acceptance;
}

/// What an earlier run found for the recipes, and before it nothing for plain decoding.
std::vector<ContextAcceptance> acceptances(const Options& options, const std::vector<Recipe>& recipes) {
  std::vector<std::string> names;
  for (const Recipe& recipe : recipes) names.push_back(recipe.name);
  std::vector<ContextAcceptance> all =
      read_acceptance(options.acceptance, names, options.plan.lengths.back());
  all.insert(all.begin(), ContextAcceptance{});
  return all;
}

/// What the text that was decoded shows, of every case.
std::vector<ContextAcceptance> acceptances(const app::DecodeMeasurement& measured) {
  std::vector<ContextAcceptance> all;
  for (size_t at = 0; at < measured.cases.size(); ++at) {
    Stats total;
    for (const std::vector<app::DecodeResult>& of_set : measured.results) {
      const std::vector<DepthStats>& depths = of_set[at].total.depths;
      total.depths.resize(std::max(total.depths.size(), depths.size()));
      for (size_t d = 0; d < depths.size(); ++d) {
        total.depths[d].drafted += depths[d].drafted;
        total.depths[d].accepted += depths[d].accepted;
      }
    }
    all.push_back(acceptance_of(total));
    std::vector<app::DecodeResult> of_case;
    for (const std::vector<app::DecodeResult>& of_set : measured.results) of_case.push_back(of_set[at]);
    all.back().share_beyond_buffer = share_beyond_buffer(measured.cases[at], measured.sets, of_case);
  }
  return all;
}

Plot figure(const Options& options, const app::DecodeMeasurement& measured,
            const std::vector<ContextResult>& results) {
  Plot plot;
  plot.title = "Speed over plain decoding with a BF16 cache";
  plot.subtitle = fmt::format("costs of {} ({} weights) with random keys and values; acceptance on {}",
                              options.decode.model, measured.weights,
                              options.acceptance.empty() ? measured.sets.front().name : options.acceptance);
  plot.x_label = "context";
  plot.y_label = "speedup";
  plot.logarithmic_x = true;
  plot.lowest_y = 0.0;
  plot.level = 1.0;
  plot.level_name = "plain";
  for (size_t at = 1; at < measured.cases.size(); ++at) {
    const std::string& recipe = measured.cases[at].recipe.name;
    PlotSeries& series = plot.series.emplace_back(PlotSeries{.name = recipe, .points = {}});
    for (const ContextResult& result : results) {
      if (result.recipe == recipe)
        series.points.push_back({static_cast<double>(result.context), result.speedup});
    }
  }
  return plot;
}

ordered_json to_json(const Options& options, const app::DecodeMeasurement& measured,
                     const std::vector<ContextAcceptance>& acceptance,
                     const std::vector<ContextResult>& results) {
  ordered_json object = app::conditions_json(options.decode, measured);
  object["acceptance_from"] = options.acceptance.empty() ? "prompts" : options.acceptance;
  object["acceptance"] = ordered_json::array();
  for (size_t at = 1; at < measured.cases.size(); ++at) {
    object["acceptance"].push_back({{"recipe", measured.cases[at].recipe.name},
                                    {"survival_by_depth", acceptance[at].survival},
                                    {"share_beyond_buffer", nullptr}});
    const std::optional<double> share = acceptance[at].share_beyond_buffer;
    if (share) object["acceptance"].back()["share_beyond_buffer"] = *share;
  }
  object["results"] = ordered_json::array();
  for (const ContextResult& result : results) {
    object["results"].push_back({{"recipe", result.recipe},
                                 {"context", result.context},
                                 {"length", result.length},
                                 {"tokens_per_step", result.tokens},
                                 {"seconds_plain", result.plain},
                                 {"seconds_draft", result.draft},
                                 {"seconds_verify", result.verify},
                                 {"speedup", result.speedup},
                                 {"length_shipped", result.length_shipped},
                                 {"speedup_shipped", result.speedup_shipped},
                                 {"cache_bytes", result.cache_bytes},
                                 {"plain_cache_bytes", result.plain_cache_bytes},
                                 {"weight_bytes", result.weight_bytes},
                                 {"caches_in_turns", result.in_turns}});
  }
  return object;
}

void print_text(const Options& options, const app::DecodeMeasurement& measured,
                const std::vector<ContextAcceptance>& acceptance, const std::vector<ContextResult>& results) {
  std::string out = app::conditions_text(options.decode, measured);
  out += fmt::format(
      "\nacceptance {}, by depth (the share of drafts that is kept at least so far); codes: the share of the "
      "decoded positions at which some of the past was met as codes\n  {:<20}{:>7}",
      options.acceptance.empty() ? "on real text" : "from " + options.acceptance, "recipe", "codes");
  for (int32_t depth = 1; depth <= options.plan.lengths.back(); ++depth) out += fmt::format("{:>8}", depth);
  out += '\n';
  for (size_t at = 1; at < measured.cases.size(); ++at) {
    const std::optional<double> share = acceptance[at].share_beyond_buffer;
    out += fmt::format("  {:<20}{:>7}", measured.cases[at].recipe.name,
                       share ? fmt::format("{:.2f}", *share) : "?");
    for (const double share : acceptance[at].survival) out += fmt::format("{:>8.3f}", share);
    out += '\n';
  }
  out += fmt::format(
      "\ncosts with random keys and values; ms per pass; speedup at the best length and at the recipe's own\n"
      "  {:<20}{:>9}{:>8}{:>10}{:>10}{:>10}{:>10}{:>9}{:>8}{:>9}{:>11}{:>11}\n",
      "recipe", "context", "length", "plain", "draft", "verify", "tokens", "speedup", "own", "speedup",
      "cache", "BF16 cache");
  bool one_after_another = false;
  for (const ContextResult& result : results) {
    one_after_another |= !result.in_turns;
    out += fmt::format(
        "  {:<20}{:>9}{:>8}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.2f}{:>9.2f}{:>8}{:>9.2f}{:>11}{:>11}{}\n",
        result.recipe, result.context, result.length, result.plain * 1e3, result.draft * 1e3,
        result.verify * 1e3, result.tokens, result.speedup, result.length_shipped, result.speedup_shipped,
        app::human_bytes(static_cast<double>(result.cache_bytes)),
        app::human_bytes(static_cast<double>(result.plain_cache_bytes)), result.in_turns ? "" : " *");
  }
  if (one_after_another) {
    out += "* the caches do not fit into memory together: one was measured after the other, not in turns\n";
  }
  app::write_out(out);
}

void bench(Options& options) {
  if (options.acceptance.empty() == options.decode.prompt_files.empty()) {
    fail(ErrorKind::kUsage, "either --prompts or --acceptance says how often drafts are kept");
  }
  std::sort(options.plan.contexts.begin(), options.plan.contexts.end());
  options.plan.threads = options.decode.threads;
  const app::InterruptGuard guard;
  std::optional<NewFolder> folder;
  if (!options.folder.empty()) folder.emplace(options.folder);
  const std::vector<Recipe> recipes = measured_recipes(options);
  std::vector<ContextAcceptance> acceptance;
  if (!options.acceptance.empty()) acceptance = acceptances(options, recipes);
  // First of all: what has been measured is lost when a later context does not fit.
  const app::DecodeMeasurement measured = app::measure_decoding(
      options.decode, recipes,
      [&](const std::vector<app::DecodeCase>& cases) { require_contexts(cases, options.plan); });
  if (acceptance.empty()) acceptance = acceptances(measured);
  const std::vector<ContextResult> results =
      bench_contexts(measured.cases, acceptance, options.plan,
                     [](double fraction) { app::show_progress("measuring contexts", fraction); });
  app::end_progress();
  const std::string json = to_json(options, measured, acceptance, results)
                               .dump(2, ' ', false, ordered_json::error_handler_t::replace) +
                           "\n";
  if (folder) {
    folder->write("contexts.svg", svg(figure(options, measured, results)));
    folder->write("contexts.json", json);
    folder->keep();
  }
  options.decode.json ? app::write_out(json) : print_text(options, measured, acceptance, results);
}

}  // namespace

void add_context(app::Command program) {
  auto options = std::make_shared<Options>();
  app::Command command = program.add_command(
      "context", "How fast long contexts decode: acceptance on real text, costs at any length");
  const auto list = [&](const char* name, auto& values, const char* what) {
    return command.add_list(name, values, what).type_name("LIST");
  };
  list("--recipes", options->recipes,
       "Self-drafting recipes; without it quantspec,quantspec-kv,quantspec-weights");
  list("--contexts", options->plan.contexts, "Positions; without it 4096,16384,32768,65536")
      .range(int64_t{1}, int64_t{1} << 22);
  list("--lengths", options->plan.lengths,
       "Tokens per draft to choose from, beside those of the recipes; without it 1,2,3,4,6")
      .range(1, 16);
  command.add_option("--seconds", options->plan.seconds, "How long to measure each pass at each context")
      .range(0.0, 3600.0)
      .show_default();
  command.add_option("-o,--output", options->folder, "The directory to make for the figure");
  app::add_decode_bench(command, options->decode);
  command.option("--prompts").required(false);
  command.add_option("--acceptance", options->acceptance,
                     "A contexts.json to take the acceptance from, for a model without text of its own");
  command.footer(
      "What passes cost does not depend on what keys and values are, so these are random; how often drafts "
      "are\n"
      "kept is measured on the prompts, within the model's own context, or taken from an earlier "
      "measurement.\n"
      "Examples:\n"
      "  verbatim-bench context big --prompts code.jsonl --limit 8 -o figures\n"
      "  verbatim-bench context big --prompts code.jsonl --contexts 4096,131072 --json\n"
      "  verbatim-bench context random --acceptance figures/contexts.json -o random-figures");
  command.callback([options] { bench(*options); });
}

}  // namespace verbatim::bench
