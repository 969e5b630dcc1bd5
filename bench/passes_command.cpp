#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/load_model.h"
#include "app/memory_units.h"
#include "app/model_options.h"
#include "app/progress.h"
#include "app/text_io.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/processors.h"
#include "bench/bandwidth_sweep.h"
#include "bench/commands.h"
#include "bench/passes_measurement.h"
#include "engine/model_access.h"
#include "kernels/dispatch.h"

namespace verbatim::bench {

namespace {

using nlohmann::ordered_json;

struct Options {
  std::string model;
  std::vector<std::string> formats;
  std::string reading = "full";
  int32_t experts = 0;
  std::vector<int64_t> rows = {1, 8};
  int64_t prompt_tokens = 512;
  int64_t context = 64;
  int32_t threads = 0;
  double seconds = 3.0;
  bool quick = false;
  bool json = false;
};

void check_formats_and_reading(const Options& options) {
  std::vector<std::string> formats = {"full"};
  std::vector<std::string> names = {"full"};
  for (const Format format : all_formats()) {
    formats.emplace_back(format_name(format));
    for (const Reading reading : readings(format)) names.emplace_back(reading_name(reading));
  }
  app::check_names("format", options.formats, formats);
  app::check_names("reading", {options.reading}, names);
}

/// What to pack the weights into: what was asked for, else what the reading needs.
std::vector<std::string> formats_to_load(const Options& options, Reading reading) {
  if (!options.formats.empty() || reading == Reading::kFull) return options.formats;
  return {std::string(store_name(reading))};
}

/// Throws Error(kUsage) where the sequence would become longer than the model can take.
void check_lengths(const Options& options, int64_t context) {
  const int64_t most_rows = *std::max_element(options.rows.begin(), options.rows.end());
  const int64_t longest = std::max(options.context + most_rows, options.prompt_tokens);
  if (longest > context) {
    fail(ErrorKind::kUsage, "the model's context is {} tokens, too short for {}: lower {}", context, longest,
         options.prompt_tokens > context ? "--prompt-tokens" : "--context or --rows");
  }
}

/// Throws Error(kUsage) unless a row can go through as many experts as are asked for.
void check_experts(const Options& options, const ModelConfig& config) {
  if (options.experts <= config.experts.used) return;
  if (config.experts.used == 0) fail(ErrorKind::kUsage, "--experts: the model has no experts; leave it out");
  fail(ErrorKind::kUsage, "--experts {}: the model takes {} experts for a row; give that many or fewer",
       options.experts, config.experts.used);
}

PassBenchPlan make_plan(const Options& options, Reading reading) {
  PassBenchPlan plan;
  plan.reading = reading;
  plan.experts = options.experts;
  plan.rows = options.rows;
  plan.context = options.context;
  plan.prompt_tokens = options.prompt_tokens;
  plan.prefill_chunk = GenerateOptions{}.prefill_chunk;
  plan.seconds = options.seconds;
  plan.working_set = default_working_set();
  if (options.quick) {
    plan.seconds = 0;
    plan.min_rounds = 3;
    plan.working_set = int64_t{64} << 20;
  }
  return plan;
}

std::vector<std::string> stored_formats(const Decoder& decoder) {
  std::vector<std::string> names;
  for (const PackedMatrix& store : decoder.weights().head.stores) {
    names.emplace_back(format_name(store.format));
  }
  return names;
}

std::vector<std::string> names_of(const std::vector<Reading>& readings) {
  std::vector<std::string> names;
  for (const Reading reading : readings) names.emplace_back(reading_name(reading));
  return names;
}

/// A measurement and what it is of.
struct Measured {
  const Options& options;
  std::vector<std::string> formats;
  int threads = 1;
  int32_t experts = 0;  // that a row goes through
  PassBenchReport report;
};

void print_json(const Measured& measured) {
  const PassBenchReport& report = measured.report;
  ordered_json object = {{"model", measured.options.model},
                         {"cpu", cpu_features().model_name},
                         {"isa", kernels().name},
                         {"threads", measured.threads},
                         {"tokens", "arbitrary"},
                         {"formats", measured.formats},
                         {"reading", measured.options.reading},
                         {"readings", names_of(report.readings)},
                         {"experts", measured.experts},
                         {"context", measured.options.context},
                         {"weight_bytes", report.weight_bytes},
                         {"read_bandwidth_gbs", report.read_bandwidth_gbs},
                         {"passes", ordered_json::array()},
                         {"prefill", nullptr}};
  for (const PassResult& result : report.passes) {
    ordered_json& pass =
        object["passes"].emplace_back(ordered_json{{"rows", result.rows},
                                                   {"rounds", result.rounds},
                                                   {"seconds", result.seconds},
                                                   {"weight_bytes", result.weight_bytes},
                                                   {"gbs", result.gbs},
                                                   {"read_bandwidth_gbs", result.bandwidth_gbs},
                                                   {"fraction_of_bandwidth", result.fraction},
                                                   {"ratio_to_one_row", nullptr}});
    if (result.to_one_row) pass["ratio_to_one_row"] = *result.to_one_row;
  }
  if (report.prefill) {
    object["prefill"] = {{"tokens", report.prefill->tokens},
                         {"rounds", report.prefill->rounds},
                         {"seconds", report.prefill->seconds},
                         {"tokens_per_second", report.prefill->tokens_per_second},
                         {"tflops", report.prefill->tflops}};
  }
  app::write_out(object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

void print_text(const Measured& measured) {
  const PassBenchReport& report = measured.report;
  std::string out = fmt::format(
      "{}; {}; {} {}; arbitrary tokens\n"
      "{} in {}, reading {}{}\n"
      "read bandwidth {:.1f} GB/s; the matrices have {}\n\n"
      "after a context of {} tokens\n"
      "  {:>5}{:>12}{:>11}{:>9}{:>10}{:>13}\n",
      cpu_features().model_name, kernels().name, measured.threads,
      measured.threads == 1 ? "thread" : "threads", app::one_line(measured.options.model),
      fmt::join(measured.formats, ", "), fmt::join(names_of(report.readings), ", "),
      measured.experts > 0 ? fmt::format(", {} experts a row", measured.experts) : "",
      report.read_bandwidth_gbs, app::human_bytes(static_cast<double>(report.weight_bytes)),
      measured.options.context, "rows", "time", "weights", "GB/s", "of read", "to one row");
  for (const PassResult& result : report.passes) {
    out += fmt::format("  {:>5}{:>12}{:>11}{:>9.2f}{:>10}{:>13}\n", result.rows,
                       fmt::format("{:.2f} ms", result.seconds * 1e3),
                       app::human_bytes(static_cast<double>(result.weight_bytes)), result.gbs,
                       fmt::format("{:.0f} %", 100.0 * result.fraction),
                       result.to_one_row ? fmt::format("{:.3f}", *result.to_one_row) : "-");
  }
  if (report.prefill) {
    out += fmt::format("\nprefill of {} tokens: {:.2f} ms, {:.0f} tokens/s, {:.3f} TFLOP/s\n",
                       report.prefill->tokens, report.prefill->seconds * 1e3,
                       report.prefill->tokens_per_second, report.prefill->tflops);
  }
  app::write_out(out);
}

void bench(const Options& options) {
  check_formats_and_reading(options);
  const Reading reading = parse_reading(options.reading, "--reading");
  const int threads = options.threads > 0 ? options.threads : hardware_threads();
  const Model model = app::load_model(options.model, formats_to_load(options, reading), threads);
  const Decoder& decoder = data_of(model).decoder;
  check_experts(options, decoder.config());
  check_lengths(options, model.context());
  ThreadTeam team(threads);
  PassBenchReport report = measure_passes(decoder, make_plan(options, reading), team,
                                          [](double fraction) { app::show_progress("measuring", fraction); });
  app::end_progress();
  const Measured measured{.options = options,
                          .formats = stored_formats(decoder),
                          .threads = threads,
                          .experts = options.experts > 0 ? options.experts : decoder.config().experts.used,
                          .report = std::move(report)};
  options.json ? print_json(measured) : print_text(measured);
}

}  // namespace

void add_passes(app::Command program) {
  auto options = std::make_shared<Options>();
  app::Command command = program.add_command(
      "passes", "Measure whole passes of a model against the speed at which memory can be read");
  command.add_option("MODEL", options->model, "A directory in Hugging Face layout or a .gguf file")
      .required();
  command.add_list("--formats", options->formats,
                   "What to pack the weights into; without it as the reading needs, or the model's own type");
  command.add_option("--reading", options->reading, "How to read them, as mxfp4-w4a8").show_default();
  command.add_option("--experts", options->experts, "Experts for a row; without it as many as the model uses")
      .range(1, 1 << 16);
  command.add_list("--rows", options->rows, "Rows per pass").range(1, 4096).show_default("1,8");
  command.add_option("--context", options->context, "Tokens before these rows")
      .show_default()
      .range(int64_t{0}, int64_t{1} << 24);
  command.add_option("--prompt-tokens", options->prompt_tokens, "Tokens of the prefill; 0 leaves it out")
      .show_default()
      .range(int64_t{0}, int64_t{1} << 24);
  command.add_option("--threads", options->threads, "Threads to compute with; without it one per processor")
      .range(1, 4096);
  command.add_option("--seconds", options->seconds, "How long to measure each case")
      .show_default()
      .range(0.0, 3600.0);
  command.add_flag("--quick", options->quick, "A few runs beside little memory: to see that it works");
  command.add_flag("--json", options->json, "Print one JSON object");
  command.footer(
      "Examples:\n"
      "  verbatim-bench passes models/target\n"
      "  verbatim-bench passes models/target --formats mxbf16 --reading mxbf16-draft --rows 1,2,4,8,16\n"
      "  verbatim-bench passes mixture.gguf --experts 1\n"
      "  verbatim-bench passes model.gguf --context 512 --prompt-tokens 0 --json");
  command.callback([options] { bench(*options); });
}

}  // namespace verbatim::bench
