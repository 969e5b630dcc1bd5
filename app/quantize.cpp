#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/new_folder.h"
#include "base/printable.h"
#include "commands.h"
#include "interrupt.h"
#include "load_model.h"
#include "memory_units.h"
#include "prepare/quantize_model.h"
#include "progress.h"
#include "text/tokenizer.h"
#include "text_io.h"

namespace verbatim::app {

namespace {

struct Options {
  std::string model;
  std::string folder;
  std::string scheme = "rtn";
  std::string calibration;
  int64_t tokens = 4096;
  int32_t threads = 0;
};

std::vector<int32_t> calibration_tokens(const Options& options, const Checkpoint& checkpoint) {
  if (checkpoint.tokenizer.kind == TokenizerSource::Kind::kNone) {
    bad_input("{} has no vocabulary, so that a calibration text cannot be read", one_line(options.model));
  }
  const std::string text = read_text(options.calibration);
  const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(checkpoint.tokenizer);
  std::vector<int32_t> tokens = tokenizer->encode(text, {.add_bos = true, .parse_special = false});
  if (tokens.size() < 2) bad_input("--calibration: {} is empty", one_line(options.calibration));
  tokens.resize(std::min(tokens.size(), static_cast<size_t>(options.tokens)));
  return tokens;
}

std::string read_me(const Options& options, size_t tokens) {
  return fmt::format(
      "# A model in four bits\n\n"
      "`{}` was made by `verbatim quantize --scheme {}`{}. Its matrices are stored in the format int4: "
      "groups of\n"
      "128 weights share a scale. It runs with the recipes w4a16, w4a4, qspec{}:\n\n"
      "    verbatim generate THIS_FOLDER --recipe w4a16 -p 'Once upon a time'\n",
      kPackedName, options.scheme, tokens > 0 ? fmt::format(" with {} tokens of text", tokens) : "",
      options.scheme == "atom" || options.scheme == "quarot" ? " and qspec-" + options.scheme : "");
}

void run_quantize(const Options& options) {
  const std::optional<QuantizationScheme> scheme = parse_scheme(options.scheme);
  if (!scheme || *scheme == QuantizationScheme::kNone) {
    fail(ErrorKind::kUsage, "--scheme: there is no scheme \"{}\"; known are rtn, awq, atom and quarot",
         printable(options.scheme));
  }
  if (needs_calibration(*scheme) && options.calibration.empty()) {
    fail(ErrorKind::kUsage, "the scheme {} looks at a text: name one with --calibration FILE",
         options.scheme);
  }
  const InterruptGuard guard(true);
  const Checkpoint checkpoint = open_checkpoint(options.model);
  QuantizeOptions quantize;
  quantize.scheme = *scheme;
  if (needs_calibration(*scheme)) quantize.calibration = calibration_tokens(options, checkpoint);
  quantize.progress = [](const char* what, double fraction) { show_progress(what, fraction); };
  quantize.cancelled = interrupted;
  NewFolder folder(options.folder);
  ThreadTeam team(options.threads > 0 ? options.threads : hardware_threads());
  const std::optional<Container> packed =
      quantize_model(checkpoint, folder.path() / kPackedName, quantize, team);
  end_progress();
  if (!packed) end_interrupted();
  print_warnings(options.model, packed->header.warnings);
  folder.write("README.md", read_me(options, quantize.calibration.size()));
  folder.keep();
  write_out(fmt::format("{}: {} with weights in int4, scheme {}\n", one_line(options.folder),
                        human_bytes(static_cast<double>(packed->bytes.size())), options.scheme));
}

}  // namespace

void add_quantize(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = program.add_subcommand(
      "quantize", "Make a model of four-bit weights, prepared for four-bit activations");
  command->add_option("MODEL", options->model, "A directory in Hugging Face layout or a .gguf file")
      ->required();
  command->add_option("-o,--output", options->folder, "The directory to make")->required();
  command
      ->add_option(
          "--scheme", options->scheme,
          "rtn rounds to nearest; awq scales inputs that matter; atom keeps outlying inputs in eight\n"
          "bits; quarot rotates outliers away")
      ->capture_default_str();
  command->add_option("--calibration", options->calibration, "A text like that to come, for awq and atom")
      ->type_name("FILE");
  command->add_option("--calibration-tokens", options->tokens, "So many tokens of it are read")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Threads to work with; without it one per processor")
      ->check(CLI::Range(1, 4096));
  command->footer(
      "The directory holds all that running the model takes.\n"
      "\n"
      "Examples:\n"
      "  verbatim quantize models/target -o /tmp/w4 --scheme awq --calibration code.txt\n"
      "  verbatim generate /tmp/w4 --recipe w4a16 -p 'def fibonacci(n):'\n"
      "  verbatim quantize models/target -o /tmp/atom --scheme atom --calibration code.txt\n"
      "  verbatim generate /tmp/atom --recipe qspec-atom -p 'def fibonacci(n):'");
  command->callback([options] { run_quantize(*options); });
}

}  // namespace verbatim::app
