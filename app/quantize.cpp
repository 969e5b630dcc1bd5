#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "command_line.h"
#include "commands.h"
#include "fail.h"
#include "interrupt.h"
#include "load_model.h"
#include "memory_units.h"
#include "progress.h"
#include "text_io.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

namespace {

struct Options {
  std::string model;
  std::string folder;
  std::string scheme = "rtn";
  std::string calibration;
  int64_t tokens = 4096;
  int32_t bits = 4;
  int32_t threads = 0;
};

void run_quantize(const Options& options) {
  const std::vector<std::string> schemes = quantization_schemes();
  if (std::find(schemes.begin(), schemes.end(), options.scheme) == schemes.end()) {
    fail(ErrorKind::kUsage, "--scheme: there is no scheme \"{}\"; known are rtn, awq, gptq, atom and quarot",
         shown_name(options.scheme));
  }
  if (options.bits != 4 && options.scheme == "atom") {
    fail(ErrorKind::kUsage, "--bits: the scheme atom has 4 bits alone");
  }
  const bool calibrate = needs_calibration(options.scheme);
  if (calibrate && options.calibration.empty()) {
    fail(ErrorKind::kUsage, "the scheme {} looks at a text: name one with --calibration FILE",
         options.scheme);
  }
  const InterruptGuard guard(true);
  QuantizeOptions quantize{
      .scheme = options.scheme,
      .bits = options.bits,
      .calibration_name = "--calibration: " + one_line(options.calibration),
      .calibration_tokens = options.tokens,
      .threads = options.threads,
      .progress = [](const char* stage, double fraction) { show_progress(stage, fraction); },
      .cancelled = interrupted};
  if (calibrate) quantize.calibration = read_text(options.calibration);
  const std::optional<QuantizeReport> quantized = quantize_model(options.model, options.folder, quantize);
  end_progress();
  if (!quantized) end_interrupted();
  print_warnings(options.model, quantized->warnings);
  write_out(fmt::format("{}: {} with weights in int4, scheme {}{}\n", one_line(options.folder),
                        human_bytes(static_cast<double>(quantized->bytes)), options.scheme,
                        options.bits == 3 ? ", of 3 bits" : ""));
}

}  // namespace

void add_quantize(Command program) {
  auto options = std::make_shared<Options>();
  Command command =
      program.add_command("quantize", "Make a model of four-bit weights, prepared for four-bit activations");
  command.add_option("MODEL", options->model, "A directory in Hugging Face layout or a .gguf file")
      .required();
  command.add_option("-o,--output", options->folder, "The directory to make").required();
  command
      .add_option(
          "--scheme", options->scheme,
          "rtn rounds to nearest; awq scales inputs that matter; gptq makes up for errors with weights\n"
          "that are left; atom keeps outlying inputs in eight bits; quarot rotates outliers away")
      .show_default();
  command
      .add_option("--calibration", options->calibration, "A text like that to come, for awq, gptq and atom")
      .type_name("FILE");
  command.add_option("--calibration-tokens", options->tokens, "So many tokens of it are read")
      .range(int64_t{1}, int64_t{1} << 24)
      .show_default();
  command
      .add_option("--bits", options->bits,
                  "Bits of a weight; with 3, which atom has not, the file is as large as with 4")
      .range(3, 4)
      .show_default();
  command.add_option("--threads", options->threads, "Threads to work with; without it one per core")
      .range(1, 4096);
  command.footer(
      "The directory holds all that running the model takes.\n"
      "\n"
      "Examples:\n"
      "  verbatim quantize models/target -o /tmp/w4 --scheme awq --calibration code.txt\n"
      "  verbatim generate /tmp/w4 --recipe w4a16 -p 'def fibonacci(n):'\n"
      "  verbatim quantize models/target -o /tmp/atom --scheme atom --calibration code.txt\n"
      "  verbatim generate /tmp/atom --recipe qspec-atom -p 'def fibonacci(n):'");
  command.callback([options] { run_quantize(*options); });
}

}  // namespace verbatim::app
