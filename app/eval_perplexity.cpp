#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "command_line.h"
#include "commands.h"
#include "fail.h"
#include "load_model.h"
#include "model_options.h"
#include "progress.h"
#include "strict_options.h"
#include "text_io.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

namespace {

struct Options {
  CommonOptions common;
  std::string file;
  PerplexityOptions perplexity;
  std::string sensitivities;
  QualityExperiments experiments;
  std::string outliers_across = "matrix";
  std::string compare_model;
  bool json = false;
};

/// What the readings need: "full" first, so that it stays apart from a lossless reading it is compared with.
std::vector<std::string> needed_formats(const PerplexityOptions& options, bool other_model) {
  std::vector<std::string> formats;
  const auto add = [&](const std::string& format) {
    if (std::find(formats.begin(), formats.end(), format) == formats.end()) formats.push_back(format);
  };
  std::vector<std::string> read = {format_of_reading(options.reading, "--reading")};
  if (!options.compare_with.empty()) {
    const std::string format = format_of_reading(options.compare_with, "--compare-with");
    if (!other_model) read.push_back(format);
  }
  if (std::find(read.begin(), read.end(), "full") != read.end()) add("full");
  for (const std::string& format : read) add(format);
  return formats;
}

Model load(const Options& options) {
  ModelOptions model;
  model.formats = options.common.formats.empty()
                      ? needed_formats(options.perplexity, !options.compare_model.empty())
                      : options.common.formats;
  model.threads = options.common.threads;
  model.sensitivities = options.sensitivities;
  model.experiments = options.experiments;
  return load_model(options.common.model, std::move(model));
}

Model load_compared(const Options& options) {
  ModelOptions model;
  model.formats = {format_of_reading(options.perplexity.compare_with, "--compare-with")};
  model.threads = options.common.threads;
  return load_model(options.compare_model, std::move(model));
}

/// Refuses settings of --squeeze-to-bits without it, or beside others that it would not go with.
void require_squeezed(const QualityExperiments& made) {
  if (made.squeeze_to_bits == 0 && (made.squeeze_group != 0 || made.squeeze_uniformly)) {
    fail(ErrorKind::kUsage,
         "--squeeze-group and --squeeze-uniformly say how --squeeze-to-bits works: give it");
  }
  if (made.squeeze_to_bits == 0) return;
  if (made.round_to_bits != 0) {
    fail(ErrorKind::kUsage, "--squeeze-to-bits and --round-to-bits are two ways to the same: give one");
  }
  if (made.outliers_across_model) {
    fail(ErrorKind::kUsage,
         "--squeeze-to-bits knows the outliers of a matrix alone: leave --outliers-across");
  }
}

void print_json(const Options& options, const PerplexityResult& result) {
  nlohmann::ordered_json object = {{"model", options.common.model},
                                   {"file", options.file},
                                   {"reading", result.reading},
                                   {"resolved_reading", result.resolved},
                                   {"cache", cache_name(options.perplexity.cache)},
                                   {"draft_cache", options.perplexity.draft_cache},
                                   {"bits_per_weight", result.bits_per_weight},
                                   {"perplexity", result.perplexity},
                                   {"mean_nll", result.mean_nll},
                                   {"standard_error", result.standard_error},
                                   {"bits_per_byte", result.bits_per_byte},
                                   {"tokens", result.tokens},
                                   {"text_tokens", result.text_tokens},
                                   {"text_bytes", result.text_bytes},
                                   {"window", result.window},
                                   {"stride", result.stride},
                                   {"windows", result.windows},
                                   {"seconds", result.seconds},
                                   {"kernels", describe_machine().kernels}};
  if (!options.perplexity.compare_with.empty()) {
    object["compared_with"] = options.perplexity.compare_with;
    if (!options.compare_model.empty()) object["compared_model"] = options.compare_model;
    object["excess_nll"] = result.excess_nll;
    object["excess_standard_error"] = result.excess_standard_error;
    object["agreement"] = result.agreement;
    object["overlap"] = result.overlap;
    object["divergence"] = result.divergence;
    object["divergence_standard_error"] = result.divergence_standard_error;
  }
  const QualityExperiments& made = options.experiments;
  const QualityExperiments usual;
  if (made.dense_only) object["dense_only"] = true;
  if (made.sparse_sensitive != usual.sparse_sensitive) object["sparse_sensitive"] = made.sparse_sensitive;
  if (made.sparse_outliers != usual.sparse_outliers) object["sparse_outliers"] = made.sparse_outliers;
  if (made.outliers_across_model) object["outliers_across"] = "model";
  if (made.round_to_bits > 0) object["rounded_to_bits"] = made.round_to_bits;
  if (made.squeeze_to_bits > 0) {
    object["squeezed_to_bits"] = made.squeeze_to_bits;
    object["squeeze_group"] = made.squeeze_group;
    object["squeezed_uniformly"] = made.squeeze_uniformly;
  }
  write_out(object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void print_text(const Options& options, const PerplexityResult& result) {
  std::string out = fmt::format(
      "perplexity {:.4f} of {} in the reading {} ({:.2f} bits per weight)\n"
      "{:.5f} nats per token, standard error {:.5f}; {:.4f} bits per byte\n"
      "{} tokens scored in {} window{} of {}, {} apart, in {:.1f} s\n",
      result.perplexity, one_line(options.file), result.reading, result.bits_per_weight, result.mean_nll,
      result.standard_error, result.bits_per_byte, result.tokens, result.windows,
      result.windows == 1 ? "" : "s", result.window, result.stride, result.seconds);
  if (!options.perplexity.compare_with.empty()) {
    out += fmt::format(
        "beside {}{}: {:+.5f} nats per token, standard error {:.5f}; {:.4f} of the likeliest tokens agree, "
        "the "
        "distributions overlap by {:.4f} and diverge by {:.6f} nats, standard error {:.6f}\n",
        options.perplexity.compare_with,
        options.compare_model.empty() ? "" : " of " + one_line(options.compare_model), result.excess_nll,
        result.excess_standard_error, result.agreement, result.overlap, result.divergence,
        result.divergence_standard_error);
  }
  write_out(out);
}

void eval_perplexity(Options& options) {
  if (!options.common.cache.empty()) {
    options.perplexity.cache =
        from_command_line([&] { return parse_cache(options.common.cache, "--cache"); });
  }
  if (options.outliers_across != "matrix" && options.outliers_across != "model") {
    fail(ErrorKind::kUsage, "--outliers-across: there is no \"{}\"; known are matrix and model",
         shown_name(options.outliers_across));
  }
  options.experiments.outliers_across_model = options.outliers_across == "model";
  const QualityExperiments& made = options.experiments;
  const QualityExperiments usual;
  if (made.dense_only && (made.sparse_sensitive != usual.sparse_sensitive ||
                          made.sparse_outliers != usual.sparse_outliers || made.outliers_across_model)) {
    fail(ErrorKind::kUsage,
         "--dense-only leaves the part out that --sensitive, --outliers and --outliers-across are about");
  }
  if (!options.compare_model.empty() && options.perplexity.compare_with.empty()) {
    options.perplexity.compare_with = "full";
  }
  require_squeezed(made);
  // Wrong names are worth saying before anything is read.
  needed_formats(options.perplexity, !options.compare_model.empty());
  const std::string text = read_text(options.file);
  if (text.empty()) bad_input("{} is empty: there is nothing to measure", options.file);
  require_utf8(text, options.file);
  const Model model = load(options);
  std::optional<Model> other;
  if (!options.compare_model.empty()) {
    other.emplace(load_compared(options));
    options.perplexity.compare_model = &*other;
  }
  options.perplexity.threads = options.common.threads;
  options.perplexity.progress = [](double fraction) { show_progress("reading the text", fraction); };
  const PerplexityResult result = measure_perplexity(model, text, options.perplexity);
  end_progress();
  options.json ? print_json(options, result) : print_text(options, result);
}

}  // namespace

void add_eval_perplexity(Command eval) {
  auto options = std::make_shared<Options>();
  Command command =
      eval.add_command("perplexity", "Measure how well a model predicts a text, in any reading");
  add_model(command, options->common);
  const int64_t most = int64_t{1} << 31;
  PerplexityOptions& perplexity = options->perplexity;
  command.add_option("FILE", options->file, "The text, in UTF-8; - is standard input").required();
  command.add_option("--reading", perplexity.reading, "How to read the weights: full, mxfp4-w4a8, ...")
      .show_default();
  command.add_option("--compare-with", perplexity.compare_with,
                     "Another reading: how often and how closely do the predictions agree?");
  command
      .add_option("--compare-model", options->compare_model,
                  "Another model with the same vocabulary, of which --compare-with then names the reading")
      .type_name("MODEL");
  command.add_option(
      "--cache", options->common.cache,
      "How keys and values are stored: bf16, f16, f32, int8 or hierarchical[:option=value,...]");
  command.add_flag("--draft-cache", perplexity.draft_cache,
                   "Read of them what a draft reads: the upper halves of the codes");
  command
      .add_option("--window", perplexity.window,
                  "Tokens of a window; without it the model's context, 1024 at most")
      .range(int64_t{1}, most);
  command
      .add_option("--stride", perplexity.stride,
                  "Tokens between the beginnings of windows; without it they do not overlap")
      .range(int64_t{1}, most);
  command.add_option("--max-tokens", perplexity.max_tokens, "Take only the first tokens of the text")
      .range(int64_t{1}, most);
  command.add_option("--threads", options->common.threads, "Threads to compute with; without it one per core")
      .range(1, 4096);
  add_portable(command);
  command.add_flag("--json", options->json, "Print one JSON object");
  const char* const packing = "Packing";
  command
      .add_list("--formats", options->common.formats,
                "Formats to pack the weights into; without it what the readings need")
      .group(packing);
  command
      .add_option("--sensitivities", options->sensitivities,
                  "A .safetensors file of sensitivities, for squeeze3 and squeeze4")
      .type_name("FILE")
      .group(packing);
  command
      .add_flag("--dense-only", options->experiments.dense_only,
                "squeeze3 and squeeze4 without their sparse part")
      .group(packing);
  command
      .add_option("--sensitive", options->experiments.sparse_sensitive,
                  "Share of the most sensitive weights in that part")
      .range(0.0, 0.045)
      .show_default()
      .group(packing);
  command
      .add_option("--outliers", options->experiments.sparse_outliers,
                  "Share of the largest of the other weights in it")
      .range(0.0, 0.045)
      .show_default()
      .group(packing);
  command
      .add_option("--outliers-across", options->outliers_across,
                  "matrix: each has that share; model: the whole has it")
      .type_name("WHAT")
      .show_default()
      .group(packing);
  command
      .add_option("--round-to-bits", options->experiments.round_to_bits,
                  "For comparisons: round the weights to nearest in so many bits first")
      .range(1, 16)
      .group(packing);
  command
      .add_option("--squeeze-to-bits", options->experiments.squeeze_to_bits,
                  "For comparisons: give the weights the values of squeeze3 or squeeze4, with tables for\n"
                  "so many bits, first")
      .range(2, 4)
      .group(packing);
  command
      .add_option("--squeeze-group", options->experiments.squeeze_group,
                  "With it: so many neighbouring inputs share a table; without it all of a column")
      .range(int64_t{1}, int64_t{1} << 20)
      .group(packing);
  command
      .add_flag("--squeeze-uniformly", options->experiments.squeeze_uniformly,
                "With it: the values of a table lie at equal distances")
      .group(packing);
  command.footer(
      "Examples:\n"
      "  verbatim eval perplexity models/target notes.txt\n"
      "  verbatim eval perplexity models/target notes.txt --reading mxfp4-w4a8 --compare-with full\n"
      "  verbatim eval perplexity models/target notes.txt --cache hierarchical --compare-with full\n"
      "  verbatim eval perplexity models/target notes.txt --window 512 --stride 256 --json\n"
      "  verbatim eval perplexity w4 notes.txt --reading int4-w4a16 --compare-model models/target");
  command.callback([options] { eval_perplexity(*options); });
}

}  // namespace verbatim::app
