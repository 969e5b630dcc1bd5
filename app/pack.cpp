#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/printable.h"
#include "commands.h"
#include "container/pack.h"
#include "interrupt.h"
#include "load_model.h"
#include "memory_units.h"
#include "progress.h"
#include "text_io.h"

namespace verbatim::app {

namespace {

struct Options {
  std::string model;
  std::string file;
  std::vector<std::string> formats = {"full", "mxfp4"};
  std::string sensitivities;
  int32_t threads = 0;
};

void check_formats(const std::vector<std::string>& names) {
  for (auto name = names.begin(); name != names.end(); ++name) {
    const std::vector<Format>& all = all_formats();
    if (*name != "full" &&
        std::none_of(all.begin(), all.end(), [&](Format f) { return format_name(f) == *name; })) {
      std::string known = "full";
      for (const Format format : all) known += ", " + std::string(format_name(format));
      fail(ErrorKind::kUsage, "--formats: there is no format \"{}\"; known are {}", printable(*name), known);
    }
    if (std::find(names.begin(), name, *name) != name) {
      fail(ErrorKind::kUsage, "--formats: {} is there twice", *name);
    }
  }
}

void run_pack(const Options& options) {
  check_formats(options.formats);
  const InterruptGuard guard(true);
  PackModelOptions pack;
  pack.load.formats = parse_formats(options.formats);
  pack.load.progress = [](double fraction) { show_progress("packing the model", fraction); };
  pack.cancelled = interrupted;
  std::optional<SensitivityFile> sensitivities;
  if (!options.sensitivities.empty()) {
    sensitivities = open_sensitivities(options.sensitivities);
    pack.load.sensitivities = &*sensitivities;
  }
  const Checkpoint checkpoint = open_checkpoint(options.model);
  ThreadTeam team(options.threads > 0 ? options.threads : hardware_threads());
  const std::optional<Container> packed = pack_model(checkpoint, options.file, pack, team);
  end_progress();
  if (!packed) end_interrupted();
  print_warnings(options.model, packed->header.warnings);
  std::string formats;
  for (const Format format : packed->formats()) {
    formats += (formats.empty() ? "" : ", ") + std::string(format_name(format));
  }
  write_out(fmt::format("{}: {} with weights in {}\n", one_line(options.file),
                        human_bytes(static_cast<double>(packed->bytes.size())),
                        formats.empty() ? "different formats" : formats));
}

}  // namespace

void add_pack(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      program.add_subcommand("pack", "Pack a model into one file that is mapped, not loaded");
  command->add_option("MODEL", options->model, "A directory in Hugging Face layout or a .gguf file")
      ->required();
  command->add_option("-o,--output", options->file, "The file to make, NAME.vbt")->required();
  command
      ->add_option("--formats", options->formats,
                   "Formats to pack into, with commas between; full is the model's own type")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LIST")
      ->default_str("full,mxfp4");
  command
      ->add_option("--sensitivities", options->sensitivities,
                   "A .safetensors file with the sensitivity of each weight, for squeeze3 and squeeze4")
      ->type_name("FILE");
  command->add_option("--threads", options->threads, "Threads to pack with; without it one per processor")
      ->check(CLI::Range(1, 4096));
  command->footer(
      "The file holds the vocabulary too and is all that running the model takes.\n"
      "`verbatim inspect FILE.vbt --verify` compares it with its checksums.\n"
      "\n"
      "Examples:\n"
      "  verbatim pack models/target -o /tmp/target.vbt\n"
      "  verbatim pack models/target -o /tmp/small.vbt --formats mxbf16\n"
      "  verbatim generate /tmp/target.vbt -p 'def fibonacci(n):'");
  command->callback([options] { run_pack(*options); });
}

}  // namespace verbatim::app
