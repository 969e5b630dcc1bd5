#include <fmt/format.h>

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
  std::string target;
  std::string to;
  std::string widen;
  int32_t threads = 0;
};

void check_names(const Options& options) {
  if (!options.to.empty() && options.to != "folder" && options.to != "gguf" && options.to != "vbt") {
    fail(ErrorKind::kUsage, "--to: there is no \"{}\"; known are folder, gguf and vbt",
         shown_name(options.to));
  }
  if (!options.widen.empty() && options.widen != "f32" && options.widen != "bf16") {
    fail(ErrorKind::kUsage, "--widen: there is no \"{}\"; known are f32 and bf16", shown_name(options.widen));
  }
}

std::string what_became(const ConvertReport& report) {
  if (report.widened == 0) return "every weight as it was";
  const std::string matrices =
      fmt::format("{} {} widened", report.widened, report.widened == 1 ? "tensor" : "tensors");
  if (report.rounded == 0) return matrices + ", every weight exactly";
  return fmt::format("{}, {} weights of them rounded", matrices, report.rounded);
}

void run_convert(const Options& options) {
  check_names(options);
  const InterruptGuard guard(true);
  const std::optional<ConvertReport> converted =
      convert_model(options.model, options.target,
                    {.to = options.to,
                     .widen = options.widen,
                     .threads = options.threads,
                     .progress = [](double fraction) { show_progress("converting the model", fraction); },
                     .cancelled = interrupted});
  end_progress();
  if (!converted) end_interrupted();
  print_warnings(options.model, converted->warnings);
  write_out(fmt::format("{}: {}, {}\n", one_line(options.target),
                        human_bytes(static_cast<double>(converted->bytes)), what_became(*converted)));
}

}  // namespace

void add_convert(Command program) {
  auto options = std::make_shared<Options>();
  Command command =
      program.add_command("convert", "Write a model in another layout: a folder, a GGUF file, a packed file");
  command.add_option("MODEL", options->model, "A directory in Hugging Face layout or a .gguf file")
      .required();
  command
      .add_option("-o,--output", options->target,
                  "What to make: NAME.gguf, NAME.vbt, or another name for a directory")
      .required();
  command.add_option("--to", options->to, "folder, gguf or vbt, whatever the name says").type_name("KIND");
  command
      .add_option("--widen", options->widen,
                  "f32 or bf16: what tensors become in a directory that has no like of their type")
      .type_name("TYPE");
  command.add_option("--threads", options->threads, "Threads to pack with; without it one per core")
      .range(1, 4096);
  command.footer(
      "Without --widen, weights keep every bit, and the converted model gives the same logits. What the\n"
      "other layout cannot say is refused by name.\n"
      "\n"
      "Examples:\n"
      "  verbatim convert models/target -o /tmp/target.gguf\n"
      "  verbatim convert /tmp/target.gguf -o /tmp/target\n"
      "  verbatim convert quantized.gguf -o /tmp/wide --widen f32\n"
      "  verbatim convert models/target -o /tmp/target.vbt");
  command.callback([options] { run_convert(*options); });
}

}  // namespace verbatim::app
