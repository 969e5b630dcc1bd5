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
  std::string file;
  std::vector<std::string> formats = {"full", "mxfp4"};
  std::string sensitivities;
  double sensitive = PackOptions().sparse_sensitive;
  double outliers = PackOptions().sparse_outliers;
  std::string outliers_across = "matrix";
  int32_t threads = 0;
};

void check_formats(const std::vector<std::string>& names) {
  std::vector<std::string> known = format_names();
  known.insert(known.begin(), {"full", "draft"});
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (std::find(known.begin(), known.end(), *name) == known.end()) {
      fail(ErrorKind::kUsage, "--formats: there is no format \"{}\"; known are {}", shown_name(*name),
           fmt::join(known, ", "));
    }
    if (std::find(names.begin(), name, *name) != name) {
      fail(ErrorKind::kUsage, "--formats: {} is there twice", *name);
    }
  }
}

/// Refuses shares of a sparse part, and sensitivities, where no format has one.
void check_shares(const Options& options) {
  if (options.outliers_across != "matrix" && options.outliers_across != "model") {
    fail(ErrorKind::kUsage, "--outliers-across: there is no \"{}\"; known are matrix and model",
         shown_name(options.outliers_across));
  }
  const PackOptions usual;
  const bool changed = options.sensitive != usual.sparse_sensitive ||
                       options.outliers != usual.sparse_outliers || options.outliers_across == "model" ||
                       !options.sensitivities.empty();
  const auto sparse = [](const std::string& format) { return format.starts_with("squeeze"); };
  if (changed && std::none_of(options.formats.begin(), options.formats.end(), sparse)) {
    fail(ErrorKind::kUsage,
         "--sensitivities, --sensitive, --outliers and --outliers-across are about squeeze3 and squeeze4: "
         "name "
         "one of these in --formats");
  }
}

void run_pack(const Options& options) {
  check_formats(options.formats);
  check_shares(options);
  const InterruptGuard guard(true);
  const std::optional<PackReport> packed =
      pack_model(options.model, options.file,
                 {.formats = options.formats,
                  .sensitivities = options.sensitivities,
                  .sparse_sensitive = options.sensitive,
                  .sparse_outliers = options.outliers,
                  .outliers_across_model = options.outliers_across == "model",
                  .threads = options.threads,
                  .progress = [](double fraction) { show_progress("packing the model", fraction); },
                  .cancelled = interrupted});
  end_progress();
  if (!packed) end_interrupted();
  print_warnings(options.model, packed->warnings);
  const auto formats = fmt::join(packed->formats, ", ");
  write_out(fmt::format("{}: {} with weights in {}\n", one_line(options.file),
                        human_bytes(static_cast<double>(packed->bytes)),
                        packed->formats.empty() ? "different formats" : fmt::to_string(formats)));
}

}  // namespace

void add_pack(Command program) {
  auto options = std::make_shared<Options>();
  Command command = program.add_command("pack", "Pack a model into one file that is mapped, not loaded");
  command.add_option("MODEL", options->model, "A directory in Hugging Face layout or a .gguf file")
      .required();
  command.add_option("-o,--output", options->file, "The file to make, NAME.vbt").required();
  command
      .add_list("--formats", options->formats,
                "Formats to pack into, with commas between; full is the model's own type")
      .type_name("LIST")
      .show_default("full,mxfp4");
  command
      .add_option("--sensitivities", options->sensitivities,
                  "A .safetensors file with the sensitivity of each weight, for squeeze3 and squeeze4")
      .type_name("FILE");
  command
      .add_option("--sensitive", options->sensitive,
                  "The most sensitive share of a matrix, which squeeze3 and squeeze4 keep in BF16")
      .range(0.0, 0.045)
      .show_default();
  command
      .add_option("--outliers", options->outliers,
                  "Share of a matrix, the largest of its other weights, that they keep in BF16")
      .range(0.0, 0.045)
      .show_default();
  command
      .add_option("--outliers-across", options->outliers_across,
                  "matrix: each has that share; model: the whole has it, the longest tails most")
      .type_name("WHAT")
      .show_default();
  command.add_option("--threads", options->threads, "Threads to pack with; without it one per core")
      .range(1, 4096);
  command.footer(
      "The file holds the vocabulary too and is all that running the model takes.\n"
      "`verbatim inspect FILE.vbt --verify` compares it with its checksums.\n"
      "\n"
      "Examples:\n"
      "  verbatim pack models/target -o /tmp/target.vbt\n"
      "  verbatim pack models/target -o /tmp/small.vbt --formats mxbf16\n"
      "  verbatim pack models/target -o /tmp/tiny.vbt --formats squeeze3 --sensitivities fisher.safetensors\n"
      "  verbatim generate /tmp/target.vbt -p 'def fibonacci(n):'");
  command.callback([options] { run_pack(*options); });
}

}  // namespace verbatim::app
