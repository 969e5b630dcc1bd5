#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench_decode_setup.h"
#include "command_line.h"
#include "commands.h"
#include "fail.h"
#include "interrupt.h"
#include "memory_units.h"
#include "text_io.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

namespace {

struct Options {
  DecodeBenchOptions bench;
  std::vector<std::string> recipes;
};

std::string cut_note(const TokenPrompts& set) {
  return set.cut == 0 ? "" : fmt::format(" ({} of them without their beginning, which did not fit)", set.cut);
}

std::string row(const DecodeMeasurement& measured, size_t set, size_t at, size_t width) {
  const DecodeCase& one = measured.cases[at];
  const DecodeResult& result = measured.results[set][at];
  const auto number = [](bool known, const char* format, double value) {
    return known ? fmt::format(fmt::runtime(format), value) : std::string("-");
  };
  std::string line =
      fmt::format("  {:<{}}{:>10}{:>9}{:>10}{:>10}{:>12}{:>9}", one_line(one.recipe.name), width,
                  number(result.timed > 0, "{:.1f}", result.tokens_per_second),
                  number(result.timed > 0, "{:.2f}", result.speedup),
                  number(result.total.drafted > 0, "{:.0f} %", 100.0 * result.total.acceptance_rate()),
                  number(result.total.target_passes > 0, "{:.2f}", result.total.mean_accepted_length()),
                  human_bytes(static_cast<double>(one.weight_bytes)), result.identical ? "yes" : "no");
  if (result.perplexity > 0) {
    line += fmt::format("{:>10}{:>13.3f}{:>10}{:>10}", fmt::format("{:.1f} %", 100.0 * result.agreement),
                        result.perplexity,
                        fmt::format("{:.1f} %", percent_of_tokens(result.total.fallbacks, result.total)),
                        fmt::format("{:.1f} %", percent_of_tokens(result.total.rollbacks, result.total)));
  }
  return line + "\n";
}

void print_text(const Options& options, const DecodeMeasurement& measured) {
  std::string out = conditions_text(options.bench, measured);
  size_t width = 8;
  for (const DecodeCase& one : measured.cases) width = std::max(width, one.recipe.name.size() + 2);
  for (size_t set = 0; set < measured.sets.size(); ++set) {
    const TokenPrompts& prompts = measured.sets[set];
    out +=
        fmt::format("\n{}, {} prompt{}{}\n  {:<{}}{:>10}{:>9}{:>10}{:>10}{:>12}{:>9}", one_line(prompts.name),
                    prompts.prompts.size(), prompts.prompts.size() == 1 ? "" : "s", cut_note(prompts),
                    "recipe", width, "tokens/s", "speedup", "accepted", "per pass", "weights", "same");
    if (options.bench.perplexity) {
      out += fmt::format("{:>10}{:>13}{:>10}{:>10}", "agreement", "perplexity", "fallback", "rollback");
    }
    out += '\n';
    for (size_t at = 0; at < measured.cases.size(); ++at) out += row(measured, set, at, width);
  }
  write_out(out);
}

void print_json(const Options& options, const DecodeMeasurement& measured) {
  nlohmann::ordered_json object = conditions_json(options.bench, measured);
  object["results"] = nlohmann::ordered_json::array();
  for (size_t set = 0; set < measured.sets.size(); ++set) {
    for (size_t at = 0; at < measured.cases.size(); ++at) {
      object["results"].push_back(result_json(measured, set, at));
    }
  }
  write_out(object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

/// A lossless recipe that says something else than plain decoding in its reading breaks the promise of the
/// program.
void check_promise(const DecodeMeasurement& measured) {
  const std::string plain = verifying_reading(measured.cases.front());
  for (const std::vector<DecodeResult>& of_set : measured.results) {
    for (size_t at = 0; at < of_set.size(); ++at) {
      if (of_set[at].identical || !measured.cases[at].recipe.lossless()) continue;
      if (verifying_reading(measured.cases[at]) != plain) continue;
      bad_input("the text of {} is not that of plain: that is a defect in Verbatim, please report it",
                one_line(measured.cases[at].recipe.name));
    }
  }
}

void bench(Options& options) {
  std::vector<Recipe> recipes;
  for (const std::string& name : options.recipes) recipes.push_back(load_recipe(name));
  options.bench.perplexity =
      std::any_of(recipes.begin(), recipes.end(), [](const Recipe& recipe) { return !recipe.lossless(); });
  const InterruptGuard guard;
  const DecodeMeasurement measured = measure_decoding(options.bench, std::move(recipes));
  options.bench.json ? print_json(options, measured) : print_text(options, measured);
  check_promise(measured);
}

}  // namespace

void add_bench_decode(Command bench_group) {
  auto options = std::make_shared<Options>();
  Command command = bench_group.add_command("decode", "Measure recipes on prompts beside plain decoding");
  command
      .add_list("--recipes", options->recipes,
                "Names from `verbatim recipes` or .toml files, with commas between; plain is always there")
      .required()
      .type_name("LIST");
  add_decode_bench(command, options->bench);
  command.footer(
      "Examples:\n"
      "  verbatim bench decode models/target --recipes ml-specqd --prompts code.jsonl --limit 20\n"
      "  verbatim bench decode models/target --recipes ml-specqd,nested --prompts code.jsonl,math.jsonl \\\n"
      "      -n 256 --temperature 0.8 --json");
  command.callback([options] { bench(*options); });
}

}  // namespace verbatim::app
