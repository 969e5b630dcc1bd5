#include <fmt/format.h>

#include <memory>

#include "command_line.h"
#include "commands.h"
#include "fail.h"
#include "interrupt.h"
#include "memory_units.h"
#include "progress.h"
#include "text_io.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

namespace {

struct Options {
  std::string model;
  std::string folder;
  InflateOptions inflate;
};

void run_inflate(Options& options) {
  if (options.inflate.width == 1 && options.inflate.depth == 0) {
    fail(ErrorKind::kUsage, "nothing would become larger: give --width, --depth or both");
  }
  const InterruptGuard guard(true);
  options.inflate.progress = [](double fraction) { show_progress("enlarging the model", fraction); };
  options.inflate.cancelled = interrupted;
  const std::optional<InflateReport> report = inflate_model(options.model, options.folder, options.inflate);
  end_progress();
  if (!report) end_interrupted();
  write_out(fmt::format("{}: {:.1f} million parameters, {} in {} {}\n", one_line(options.folder),
                        static_cast<double>(report->parameters) / 1e6,
                        human_bytes(static_cast<double>(report->bytes)), report->files,
                        report->files == 1 ? "file" : "files"));
}

}  // namespace

void add_inflate(Command program) {
  auto options = std::make_shared<Options>();
  Command command = program.add_command(
      "inflate", "Make a larger model that says the same, to measure speed at a realistic size");
  command.add_option("MODEL", options->model, "A directory in Hugging Face layout").required();
  command.add_option("-o,--output", options->folder, "The directory to make").required();
  command.add_option("--width", options->inflate.width, "Times as many channels and heads: 1, 2, 4 or 8")
      .show_default()
      .one_of({1, 2, 4, 8});
  command.add_option("--depth", options->inflate.depth, "Layers of the result; without it the model's")
      .range(1, 1024);
  command.footer(
      "The text stays that of MODEL up to rounding, and its quality too; only the work grows.\n"
      "\n"
      "Example:\n"
      "  verbatim inflate models/target -o /tmp/target-1b --width 4 --depth 23");
  command.callback([options] { run_inflate(*options); });
}

}  // namespace verbatim::app
