#include "sensitivities_command.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "activations.h"
#include "app/fail.h"
#include "app/interrupt.h"
#include "app/memory_units.h"
#include "app/progress.h"
#include "app/text_io.h"
#include "base/processors.h"
#include "base/sha256.h"
#include "base/stopwatch.h"
#include "engine/model_data.h"
#include "fisher.h"
#include "text/tokenizer.h"

namespace verbatim::train {

namespace {

struct Options {
  std::string model;
  std::string text;
  std::string file;
  FisherOptions fisher;
  std::string measure = "gradients";
};

/// The tokens of a text, and the token before each of its sequences, if the vocabulary wants one.
struct Tokens {
  std::vector<int32_t> text;
  std::optional<int32_t> bos;
};

Tokens tokens_of(const Checkpoint& checkpoint, const std::string& text) {
  const std::shared_ptr<const Tokenizer> tokenizer = tokenizer_of(checkpoint);
  if (tokenizer == nullptr)
    app::bad_input("{} has no vocabulary, so that a text cannot be read", checkpoint.path.string());
  Tokens tokens{tokenizer->encode(text, {.add_bos = false, .parse_special = false}), std::nullopt};
  const std::vector<int32_t> begin = tokenizer->encode("", {.add_bos = true, .parse_special = false});
  if (!begin.empty()) tokens.bos = begin.front();
  return tokens;
}

/// Computes what the options ask for.
std::optional<FisherReport> measure(const Options& options, const Checkpoint& checkpoint,
                                    const std::vector<std::vector<int32_t>>& samples) {
  const auto write = options.measure == "activations" ? write_activations : write_sensitivities;
  std::optional<FisherReport> report = write(checkpoint, samples, options.file, options.fisher);
  app::end_progress();
  if (report) return report;
  if (options.measure == "activations") {
    app::say("verbatim-train: interrupted; nothing is left of it\n");
  } else {
    app::say(
        "verbatim-train: interrupted; what is done so far is in {}.work, and the same command goes on with "
        "it if you add --resume\n",
        app::one_line(options.file));
  }
  throw app::Exit{app::kInterruptedExit};
}

void run(Options& options) {
  if (options.measure != "gradients" && options.measure != "activations") {
    app::fail(ErrorKind::kUsage, "--measure: there is no \"{}\"; known are gradients and activations",
              app::shown_name(options.measure));
  }
  const bool gradients = options.measure == "gradients";
  if (!gradients && options.fisher.resume) {
    app::fail(ErrorKind::kUsage,
              "--resume: activations take one pass, of which an interruption leaves nothing");
  }
  const std::string text = app::read_text(options.text);
  options.fisher.text_digest = hexadecimal(Sha256().add(std::as_bytes(std::span(text))).digest());
  const Checkpoint checkpoint = open_checkpoint(options.model);
  const SampleOptions& samples = options.fisher.samples;
  if (samples.length > checkpoint.config.context) {
    app::bad_input("--length: samples of {} tokens do not fit into the {} tokens of context of {}",
                   samples.length, checkpoint.config.context, options.model);
  }
  if (options.fisher.threads == 0) options.fisher.threads = hardware_threads();
  if (gradients) require_room(checkpoint.config, options.file, options.fisher);
  const Tokens tokens = tokens_of(checkpoint, text);
  const std::vector<std::vector<int32_t>> chosen =
      choose_samples(tokens.text, tokens.bos, samples, app::one_line(options.text));
  options.fisher.progress = [](const char* stage, double fraction) { app::show_progress(stage, fraction); };
  options.fisher.cancelled = app::interrupted;
  const app::InterruptGuard guard(true);
  const auto start = std::chrono::steady_clock::now();
  const std::optional<FisherReport> report = measure(options, checkpoint, chosen);
  for (const std::string& tensor : report->none) {
    app::say("verbatim-train: {} {}: its weights will count alike\n",
             gradients ? "the loss of no sample depends on" : "no sample has an input for", tensor);
  }
  if (gradients && samples.length == 2 && !report->none.empty()) {
    app::say(
        "verbatim-train: the first of 2 tokens attends to itself alone, whatever its query and key are: "
        "longer samples depend on them\n");
  }
  app::write_out(fmt::format("{}: sensitivities of {} weights from {} samples of {} tokens; {}{:.1f} s\n",
                             app::one_line(options.file), report->weights, samples.samples, samples.length,
                             gradients ? fmt::format("{:.5f} nats per token; ", report->loss) : "",
                             seconds_since(start)));
}

}  // namespace

void add_sensitivities(app::Command program) {
  auto options = std::make_shared<Options>();
  app::Command command = program.add_command(
      "sensitivities", "Find out how much the loss on a text depends on each weight of a model");
  command.add_option("MODEL", options->model, "A directory in Hugging Face layout or a .gguf file")
      .required();
  command.add_option("TEXT", options->text, "The text, in UTF-8; - is standard input").required();
  command.add_option("-o,--output", options->file, "The file to make, NAME.safetensors").required();
  FisherOptions& fisher = options->fisher;
  command.add_option("--samples", fisher.samples.samples, "Sequences of the text, at random places")
      .range(1, 1 << 20)
      .show_default();
  command.add_option("--length", fisher.samples.length, "Tokens of a sequence")
      .range(2, 1 << 20)
      .show_default();
  command.add_option("--seed", fisher.samples.seed, "The seed of the places").show_default();
  command
      .add_option("--measure", options->measure,
                  "gradients of the loss, squared, or activations: the squares of the matrices' inputs")
      .type_name("WHAT")
      .show_default();
  command.add_flag("--output-matrix", fisher.output_matrix, "Also for the output matrix");
  command.add_flag("--resume", fisher.resume, "Go on with what an interrupted run has left");
  command.add_option("--threads", fisher.threads, "Samples to compute at a time; without it one per core")
      .range(1, 4096);
  command.footer(
      "One layer is in memory at a time, with its gradients once more for every thread. What lies between "
      "the\n"
      "layers is in a folder beside the file, NAME.safetensors.work, until the file is complete.\n"
      "\n"
      "Examples:\n"
      "  verbatim-train sensitivities models/target notes.txt -o fisher.safetensors\n"
      "  verbatim pack models/target -o small.vbt --formats squeeze3 --sensitivities fisher.safetensors");
  command.callback([options] { run(*options); });
}

}  // namespace verbatim::train
