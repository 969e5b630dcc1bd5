#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "app/bench_decode_setup.h"
#include "app/command_line.h"
#include "app/interrupt.h"
#include "app/model_options.h"
#include "app/text_io.h"
#include "base/error.h"
#include "base/new_folder.h"
#include "bench/commands.h"
#include "bench/sweep_figures.h"

namespace verbatim::bench {

namespace {

using nlohmann::ordered_json;

struct Options {
  app::DecodeBenchOptions bench;
  std::string recipe;
  std::vector<int32_t> lengths;
  std::vector<float> thresholds;
  std::vector<float> rollbacks;
  std::string folder;
};

template <typename T>
void sort_distinct(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

/// Fills in what was not asked for. The rollbacks of `bild` and its fallback threshold are swept over the
/// ranges of the thesis (appendix C.1), with the recipe's own length; other recipes over lengths instead.
void complete(Options& options, const Recipe& recipe) {
  const bool bild = recipe.acceptance == Recipe::Acceptance::kBild;
  if (!bild && !options.rollbacks.empty()) {
    fail(ErrorKind::kUsage, "--rollbacks is for recipes that accept by the rule bild; {} does not",
         recipe.name);
  }
  if (options.lengths.empty()) {
    options.lengths = bild ? std::vector{recipe.levels.front().length} : std::vector{1, 2, 4, 8, 16};
  }
  if (options.thresholds.empty()) options.thresholds = {0.0f, 0.2f, 0.4f, 0.6f, 0.8f};
  if (options.rollbacks.empty()) {
    options.rollbacks = bild ? std::vector{1.0f, 2.0f, 3.0f, 5.0f, 10.0f} : std::vector{recipe.rollback};
  }
  sort_distinct(options.lengths);
  sort_distinct(options.thresholds);
  sort_distinct(options.rollbacks);
}

/// The recipe in every setting, each with a name of its own.
std::vector<Recipe> variants(const Options& options, const Recipe& recipe) {
  std::vector<Recipe> all;
  for (const int32_t length : options.lengths) {
    for (const float threshold : options.thresholds) {
      for (const float rollback : options.rollbacks) {
        Recipe& variant = all.emplace_back(recipe);
        variant.levels.front().length = length;
        variant.levels.front().threshold = threshold;
        variant.rollback = rollback;
        variant.name = fmt::format("{} {} {} {}", recipe.name, length, threshold, rollback);
      }
    }
  }
  return all;
}

std::vector<SweepPoint> points_of(const app::DecodeMeasurement& measured) {
  std::vector<SweepPoint> points;
  for (size_t at = 1; at < measured.cases.size(); ++at) {  // the first is plain
    const Recipe& variant = measured.cases[at].recipe;
    points.push_back({.length = variant.levels.front().length,
                      .threshold = variant.levels.front().threshold,
                      .rollback = variant.rollback,
                      .result = measured.results.front()[at]});
  }
  return points;
}

ordered_json sweep_json(const Options& options, const Recipe& recipe, const app::DecodeMeasurement& measured,
                        const std::vector<SweepFigure>& figures) {
  ordered_json object = app::conditions_json(options.bench, measured);
  object["recipe"] = recipe.name;
  object["prompt_set"] = measured.sets.front().name;
  object["figures"] = ordered_json::array();
  for (const SweepFigure& figure : figures) object["figures"].push_back(figure.file);
  object["plain"] = app::result_json(measured, 0, 0);
  object["results"] = ordered_json::array();
  const std::vector<SweepPoint> points = points_of(measured);
  for (size_t i = 0; i < points.size(); ++i) {
    ordered_json result = {{"length", points[i].length}, {"threshold", app::as_written(points[i].threshold)}};
    if (recipe.acceptance == Recipe::Acceptance::kBild)
      result["rollback"] = app::as_written(points[i].rollback);
    result.update(app::result_json(measured, 0, i + 1));
    result["recipe"] = recipe.name;
    object["results"].push_back(std::move(result));
  }
  return object;
}

void print_text(const Options& options, const Recipe& recipe, const app::DecodeMeasurement& measured,
                const std::vector<SweepFigure>& figures) {
  const bool bild = recipe.acceptance == Recipe::Acceptance::kBild;
  const app::TokenPrompts& set = measured.sets.front();
  std::string out = app::conditions_text(options.bench, measured);
  out += fmt::format(
      "{} on {}, {} prompts; plain: {:.1f} tokens/s\n\n  {:>6}{:>11}{}{:>10}{:>9}{:>10}{:>10}{}\n",
      app::one_line(recipe.name), app::one_line(set.name), set.prompts.size(),
      measured.results.front().front().tokens_per_second, "length", "threshold", bild ? "  rollback" : "",
      "tokens/s", "speedup", "accepted", "per pass", recipe.lossless() ? "" : " agreement  perplexity");
  for (const SweepPoint& point : points_of(measured)) {
    const Stats& total = point.result.total;
    out += fmt::format(
        "  {:>6}{:>11}{}{:>10.1f}{:>9.2f}{:>10}{:>10.2f}", point.length, fmt::format("{:g}", point.threshold),
        bild ? fmt::format("{:>10}", fmt::format("{:g}", point.rollback)) : "",
        point.result.tokens_per_second, point.result.speedup,
        fmt::format("{:.0f} %", 100.0 * total.acceptance_rate()), total.mean_accepted_length());
    if (!recipe.lossless()) {
      out += fmt::format("{:>10}{:>12.3f}", fmt::format("{:.1f} %", 100.0 * point.result.agreement),
                         point.result.perplexity);
    }
    out += '\n';
  }
  out += "\n";
  for (const SweepFigure& figure : figures) {
    out += app::one_line((std::filesystem::path(options.folder) / figure.file).string()) + "\n";
  }
  app::write_out(out);
}

void sweep(Options& options) {
  const Recipe recipe = load_recipe(options.recipe);
  if (recipe.plain()) fail(ErrorKind::kUsage, "the recipe {} drafts nothing, so nothing varies", recipe.name);
  if (options.bench.prompt_files.size() != 1) fail(ErrorKind::kUsage, "a sweep is over one file of prompts");
  complete(options, recipe);
  options.bench.perplexity = !recipe.lossless();
  const app::InterruptGuard guard(true);
  NewFolder folder(options.folder);  // nothing is measured that could not be written
  const app::DecodeMeasurement measured = app::measure_decoding(options.bench, variants(options, recipe));
  const std::string subtitle =
      fmt::format("{}, {} prompts, temperature {:g}", measured.sets.front().name,
                  measured.sets.front().prompts.size(), options.bench.generate.sampling.temperature);
  const std::vector<SweepFigure> figures =
      sweep_figures(recipe, subtitle, points_of(measured), measured.results.front().front());
  const std::string json = sweep_json(options, recipe, measured, figures)
                               .dump(2, ' ', false, ordered_json::error_handler_t::replace) +
                           "\n";
  for (const SweepFigure& figure : figures) folder.write(figure.file.c_str(), svg(figure.plot));
  folder.write("sweep.json", json);
  folder.keep();
  options.bench.json ? app::write_out(json) : print_text(options, recipe, measured, figures);
}

}  // namespace

void add_sweep(app::Command program) {
  auto options = std::make_shared<Options>();
  app::Command command =
      program.add_command("sweep", "Measure a recipe over lengths and thresholds, and draw the curves");
  command.add_option("--recipe", options->recipe, "A name from `verbatim recipes` or a .toml file")
      .required();
  command.add_option("-o,--output", options->folder, "The directory to make for the figures").required();
  const auto list = [&](const char* name, auto& values, const char* what) {
    return command.add_list(name, values, what).type_name("LIST");
  };
  list("--lengths", options->lengths,
       "The most tokens to draft; without it 1,2,4,8,16, for bild the recipe's")
      .range(1, 64);
  list("--thresholds", options->thresholds, "Least probabilities to draft on; without it 0,0.2,0.4,0.6,0.8")
      .range(0.0, 1.0);
  list("--rollbacks", options->rollbacks, "For bild: where the model rolls back; without it 1,2,3,5,10")
      .range(0.0, 1e6);
  app::add_decode_bench(command, options->bench);
  command.footer(
      "Examples:\n"
      "  verbatim-bench sweep models/target --recipe ml-specqd --prompts code.jsonl -o figures\n"
      "  verbatim-bench sweep models/target --recipe bild --prompts code.jsonl -o figures \\\n"
      "      --thresholds 0.3,0.6,0.9 --rollbacks 1,3,6 --draft-model models/draft");
  command.callback([options] { sweep(*options); });
}

}  // namespace verbatim::bench
