#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <optional>
#include <vector>

#include "command_line.h"
#include "commands.h"
#include "fail.h"
#include "text_io.h"
#include "verbatim/accelerator.h"

namespace verbatim::app {

namespace {

struct Options {
  SimulateOptions simulate;
  double draft_length = 0;
  double acceptance = 0;
  std::string report;
  bool paper = false;
  bool json = false;
};

/// What is of no use without a model.
constexpr const char* kOfAModel[] = {"--trace",      "--draft-length", "--acceptance", "--dropped",
                                     "--max-tokens", "--baseline",     "--json"};

void run(Command command, Options& options) {
  if (command.given("--draft-length")) options.simulate.draft_length = options.draft_length;
  if (command.given("--acceptance")) options.simulate.acceptance = options.acceptance;
  const bool modelled = !options.simulate.config.empty();
  if (!modelled && !options.paper) fail(ErrorKind::kUsage, "--config is required");
  for (const char* const option : kOfAModel) {
    if (!modelled && command.given(option)) fail(ErrorKind::kUsage, "{} needs --config", option);
  }
  std::ofstream report;
  if (!options.report.empty()) {
    report.open(options.report, std::ios::binary | std::ios::trunc);
    if (!report) bad_input("cannot write {}", one_line(options.report));
  }
  std::optional<Simulation> simulation;
  if (modelled) simulation = simulate(options.simulate);
  PaperComparison paper;
  if (options.paper || report.is_open()) paper = compare_with_paper(options.simulate);
  if (report.is_open()) {
    report << (simulation ? simulation_page(options.simulate, *simulation, paper) : paper_page(paper));
    if (!report.flush()) bad_input("cannot write {}", one_line(options.report));
  }
  if (simulation) write_out(options.json ? simulation_json(*simulation) : simulation_text(*simulation));
  if (options.paper) write_out((simulation ? "\n" : "") + paper_text(paper));
}

}  // namespace

void add_simulate(Command program) {
  auto options = std::make_shared<Options>();
  SimulateOptions& simulate = options->simulate;
  Command command = program.add_command("simulate", "Decode on a model of SPEQ's accelerator");
  command
      .add_option("--config", simulate.config,
                  "A config.json, its folder, or vicuna-7b, llama2-7b, llama3.1-8b, llama3.2-3b, llama2-13b")
      .type_name("FILE");
  Option trace =
      command.add_option("--trace", simulate.trace, "What decoding did: a file of generate --trace or --json")
          .type_name("FILE");
  command.add_option("--draft-length", options->draft_length,
                     "In place of a trace: drafted tokens of a step, on average");
  command.add_option("--acceptance", options->acceptance, "With it: the share of them that is accepted");
  Option dropped = command
                       .add_option("--dropped", simulate.dropped,
                                   "With it: draft passes of a step whose token is dropped, beside those")
                       .show_default()
                       .range(int64_t{0}, int64_t{64});
  Option prompt =
      command.add_option("--prompt", simulate.prompt_tokens, "Without a trace: tokens of the prompt")
          .show_default()
          .range(int64_t{1}, int64_t{1} << 20);
  Option tokens =
      command.add_option("-n,--max-tokens", simulate.generated_tokens, "Without a trace: tokens to generate")
          .show_default()
          .range(int64_t{1}, int64_t{1} << 20);
  for (const Option& told : {dropped, prompt, tokens}) trace.excludes(told);
  command
      .add_option("--hardware", simulate.hardware,
                  "The machine: speq, speq-verbatim, olive-8, tender-8, ... or a .toml file")
      .show_default();
  command.add_option("--baseline", simulate.baseline, "The machine that decodes plainly beside it")
      .show_default();
  command.add_option("--dram", simulate.dram,
                     "The memory of both: ddr4-3200, lpddr4-3200, lpddr5-6400, hbm2 or a .toml file");
  Option json = command.add_flag("--json", options->json, "Print one JSON object");
  command.add_option("--report", options->report, "Write a page in HTML, with the paper's tables and figures")
      .type_name("FILE");
  Option paper = command.add_flag(
      "--paper", options->paper, "Print the paper's tables and figures beside ours, with or without a model");
  paper.excludes(json);
  command.footer(
      "Examples:\n"
      "  verbatim simulate --config llama2-13b --draft-length 6 --acceptance 0.98\n"
      "  verbatim simulate --paper --report report.html\n"
      "  verbatim simulate --config models/target/config.json --trace trace.jsonl --dram hbm2");
  command.callback([command, options] { run(command, *options); });
}

}  // namespace verbatim::app
