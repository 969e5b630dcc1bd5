#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command_line.h"
#include "commands.h"
#include "describe_recipe.h"
#include "fail.h"
#include "interrupt.h"
#include "load_model.h"
#include "memory_units.h"
#include "model_options.h"
#include "progress.h"
#include "stats_report.h"
#include "text_io.h"

namespace verbatim::app {

namespace {

struct Options {
  CommonOptions common;
  std::string prompt;
  std::string prompt_file;
  std::string schema;  // none: any text
  GenerateOptions generate;
  bool json = false;
  bool stats = false;
  std::string trace;  // the file to write; none: empty
};

void print_json(const Options& options, const Recipe& recipe, const GenerateResult& result,
                double seconds_load) {
  const Stats& stats = result.stats;
  nlohmann::ordered_json object;
  object["text"] = result.text;
  object["tokens"] = result.tokens;
  object["prompt_tokens"] = stats.prompt_tokens;
  object["generated_tokens"] = stats.generated_tokens;
  object["finish_reason"] = finish_reason_name(stats.finish);
  object["recipe"] = recipe.name;
  object["lossless"] = recipe.lossless();
  object["guarantee"] = recipe.guarantee();
  object["cache"] = cache_name(recipe.cache);
  object["seed"] = options.common.sampling.seed;
  object["seconds"] = {
      {"load", seconds_load}, {"prefill", stats.seconds_prefill}, {"decode", stats.seconds_decode}};
  add_stats(object, stats);
  object["peak_rss_bytes"] = peak_resident_bytes();
  // A vocabulary can produce bytes that are no UTF-8; JSON cannot hold them.
  write_out(object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

/// Writes a line for each step of decoding, and one with their sums.
void write_trace(std::ofstream& file, const Options& options, const GenerateResult& result) {
  for (const DecodingStep& step : result.steps) {
    const nlohmann::ordered_json line = {{"position", step.position},
                                         {"drafted", step.drafted},
                                         {"accepted", step.accepted},
                                         {"draft_passes", step.draft_passes},
                                         {"rows", step.rows}};
    file << line.dump() << '\n';
  }
  const Stats& stats = result.stats;
  const nlohmann::ordered_json end = {{"end", true},
                                      {"prompt_tokens", stats.prompt_tokens},
                                      {"generated_tokens", stats.generated_tokens},
                                      {"steps", stats.target_passes},
                                      {"drafted", stats.drafted},
                                      {"accepted", stats.accepted},
                                      {"draft_passes", stats.draft_passes}};
  file << end.dump() << '\n';
  if (!file.flush()) bad_input("cannot write {}", one_line(options.trace));
}

/// The structure of a schema that is given as text, which begins with a brace, or as the name of a file.
Structure schema_structure(const std::string& schema) {
  const size_t first = schema.find_first_not_of(" \t\r\n");
  const bool text = first != std::string::npos && schema[first] == '{';
  return Structure::json_schema(text ? schema : read_text(schema));
}

void generate(Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const Recipe recipe = chosen_recipe(options.common);
  const std::string prompt = options.prompt_file.empty() ? options.prompt : read_text(options.prompt_file);
  if (prompt.empty()) {
    const bool from_file = !options.prompt_file.empty();
    fail(from_file ? ErrorKind::kBadInput : ErrorKind::kUsage,
         "the prompt is empty: give some text with -p TEXT or -f FILE");
  }
  for (const std::string& stop : options.generate.stop) {
    if (stop.empty()) fail(ErrorKind::kUsage, "a --stop string cannot be empty");
  }
  options.generate.sampling = options.common.sampling;
  if (!options.schema.empty()) options.generate.structure = schema_structure(options.schema);
  options.generate.cancelled = interrupted;
  options.generate.prefill_progress = show_reading;
  const Model model = load_model(options.common.model, options.common.load_options({recipe}));
  const std::vector<int32_t> tokens = model.encode(prompt);
  const int64_t room = static_cast<int64_t>(tokens.size()) + options.generate.max_tokens;
  Engine engine(model,
                {.max_batch = 1, .capacity = room, .prompt_cache = false, .threads = options.common.threads});
  if (const auto drafts = load_draft_model(options.common, recipe)) engine.set_draft_model(*drafts);
  engine.prepare(recipe, show_measuring);
  end_progress();
  const std::string warning = lossy_warning(recipe);
  if (!warning.empty()) say("verbatim: {}\n", one_line(warning));
  const double seconds_load = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  std::ofstream trace;
  if (!options.trace.empty()) {
    trace.open(options.trace, std::ios::binary | std::ios::trunc);
    if (!trace) bad_input("cannot write {}", one_line(options.trace));
    options.generate.steps = true;
  }
  const InterruptGuard guard;
  TokenStream stream = engine.submit({tokens, options.generate, recipe});
  while (const auto piece = stream.next()) {
    if (!options.json) write_out(piece->text);
  }
  const GenerateResult result = stream.wait();
  end_progress();
  if (options.json) {
    print_json(options, recipe, result, seconds_load);
  } else {
    if (isatty(STDOUT_FILENO) == 1) write_out("\n");
    say("{}\n", summary(result.stats, recipe));
  }
  if (options.stats) say("{}", stats_report(result.stats, recipe));
  if (trace.is_open()) write_trace(trace, options, result);
  if (interrupted()) throw Exit{kInterruptedExit};
}

}  // namespace

void add_generate(Command program) {
  auto options = std::make_shared<Options>();
  Command command = program.add_command("generate", "Continue a text");
  add_model(command, options->common);
  Option prompt = command.add_option("-p,--prompt", options->prompt, "The text to continue");
  Option file =
      command.add_option("-f,--file", options->prompt_file, "A file with the text; - is standard input")
          .type_name("FILE");
  prompt.excludes(file);
  file.excludes(prompt);
  command.add_option("-n,--max-tokens", options->generate.max_tokens, "Tokens to generate at most")
      .show_default()
      .range(int64_t{0}, int64_t{1} << 24);
  add_decoding(command, options->common);
  command.add_option("--stop", options->generate.stop, "End before this text; may be given several times")
      .one_value();
  command.add_option("--prefill-chunk", options->generate.prefill_chunk, "Prompt tokens per pass")
      .show_default()
      .range(int64_t{1}, int64_t{1} << 20);
  command
      .add_option("--schema", options->schema,
                  "Reply in JSON that fits this schema: a text that begins with { or a file")
      .type_name("SCHEMA");
  command.add_flag("--ignore-eos", options->generate.ignore_eos, "Go on after the end-of-sequence token");
  command.add_flag("--json", options->json, "Print one JSON object with the text and statistics");
  command.add_flag("--stats", options->stats,
                   "Also say on stderr where the time went and what became of the drafts");
  command.add_option("--trace", options->trace, "Write what each step did, for `verbatim simulate --trace`")
      .type_name("FILE");
  command.footer(
      "Examples:\n"
      "  verbatim generate models/target -p 'def fibonacci(n):'\n"
      "  verbatim generate model.gguf -p 'Once upon a time' -n 200 --temperature 0.8 --seed 7\n"
      "  verbatim generate models/target -f prompt.txt --recipe plain --json");
  command.callback([options] { generate(*options); });
}

}  // namespace verbatim::app
