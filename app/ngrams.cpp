#include <fmt/format.h>

#include <bit>
#include <filesystem>
#include <memory>

#include "command_line.h"
#include "commands.h"
#include "fail.h"
#include "memory_units.h"
#include "text_io.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

namespace {

struct Options {
  std::string model;
  std::vector<std::string> texts;
  std::string file;
  NgramOptions ngrams;
};

void run_ngrams(const Options& options) {
  const NgramOptions& ngrams = options.ngrams;
  if (ngrams.shortest > ngrams.longest) {
    fail(ErrorKind::kUsage, "--shortest is {} and --longest {}: the first cannot be above the second",
         ngrams.shortest, ngrams.longest);
  }
  std::error_code unreadable;
  if (std::filesystem::exists(options.file, unreadable))
    bad_input("{} exists already: choose another name", options.file);
  NgramCounter counter(options.model, ngrams);
  for (const std::string& path : options.texts) counter.add(read_text(path), path);
  if (counter.contexts() == 0) {
    bad_input("the text is too short: nothing follows {} token{}", ngrams.shortest,
              ngrams.shortest == 1 ? "" : "s");
  }
  counter.save(options.file);
  write_out(fmt::format("{}: {} after {} contexts of {} to {}, from {} tokens\n", one_line(options.file),
                        human_bytes(static_cast<double>(std::filesystem::file_size(options.file))),
                        counter.contexts(), ngrams.shortest, ngrams.longest, counter.tokens()));
}

}  // namespace

void add_ngrams(Command program) {
  auto options = std::make_shared<Options>();
  Command command = program.add_command("ngrams", "Count which tokens follow which in a text, to draft with");
  command.add_option("MODEL", options->model, "The model whose vocabulary counts").required();
  command.add_option("TEXTFILE", options->texts, "Texts in UTF-8; - is standard input").required();
  command.add_option("-o,--output", options->file, "The file to make, NAME.ngrams").required();
  command.add_option("--shortest", options->ngrams.shortest, "The fewest tokens that a guess goes by")
      .range(1, kLongestNgram)
      .show_default();
  command.add_option("--longest", options->ngrams.longest, "The most tokens that a guess goes by")
      .range(1, kLongestNgram)
      .show_default();
  command
      .add_option("--contexts", options->ngrams.contexts,
                  "Runs of tokens to remember, of each length: a power of two")
      .range(int64_t{4}, kMostNgramContexts)
      .show_default();
  command.footer(
      "A recipe drafts with the file where its [drafter] says kind = \"ngram\" and table = \"FILE\". Only "
      "the\n"
      "speed depends on it, never the text. The rarest runs are left out where there is no room for all; a\n"
      "context takes 32 bytes of memory.\n"
      "\n"
      "Example:\n"
      "  verbatim ngrams models/target src/*.py -o /tmp/python.ngrams --longest 4");
  command.callback([options] { run_ngrams(*options); });
}

}  // namespace verbatim::app
