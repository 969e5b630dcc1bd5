#include <fmt/format.h>

#include <bit>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "commands.h"
#include "container/load.h"
#include "drafting/ngram_table.h"
#include "memory_units.h"
#include "text/tokenizer.h"
#include "text_io.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

namespace {

struct Options {
  std::string model;
  std::vector<std::string> texts;
  std::string file;
  int32_t shortest = 1;
  int32_t longest = 4;
  int64_t contexts = NgramTable::kDefaultContexts;
};

/// What there is of a model without its weights.
Checkpoint open_model(const std::string& path) {
  return is_packed(path) ? checkpoint_of(open_container(path)) : open_checkpoint(path);
}

void run_ngrams(const Options& options) {
  if (options.shortest > options.longest) {
    fail(ErrorKind::kUsage, "--shortest is {} and --longest {}: the first cannot be above the second",
         options.shortest, options.longest);
  }
  std::error_code unreadable;
  if (std::filesystem::exists(options.file, unreadable))
    bad_input("{} exists already: choose another name", options.file);
  const Checkpoint checkpoint = open_model(options.model);
  const auto tokenizer = load_tokenizer(checkpoint.tokenizer);
  NgramTable table({options.shortest, options.longest, options.contexts, checkpoint.config.vocab_size});
  size_t tokens = 0;
  for (const std::string& path : options.texts) {
    const std::string text = read_text(path);
    require_utf8(text, path);
    // As a prompt is taken in, but that texts do not begin where a sequence does.
    const std::vector<int32_t> encoded = tokenizer->encode(text, {.add_bos = false, .parse_special = true});
    table.learn(encoded);
    tokens += encoded.size();
  }
  if (table.size() == 0) {
    bad_input("the text is too short: nothing follows {} token{}", options.shortest,
              options.shortest == 1 ? "" : "s");
  }
  table.save(options.file);
  write_out(fmt::format("{}: {} after {} contexts of {} to {}, from {} tokens\n", one_line(options.file),
                        human_bytes(static_cast<double>(std::filesystem::file_size(options.file))),
                        table.size(), options.shortest, options.longest, tokens));
}

}  // namespace

void add_ngrams(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      program.add_subcommand("ngrams", "Count which tokens follow which in a text, to draft with");
  command->add_option("MODEL", options->model, "The model whose vocabulary counts")->required();
  command->add_option("TEXTFILE", options->texts, "Texts in UTF-8; - is standard input")->required();
  command->add_option("-o,--output", options->file, "The file to make, NAME.ngrams")->required();
  command->add_option("--shortest", options->shortest, "The fewest tokens that a guess goes by")
      ->check(CLI::Range(1, NgramTable::kLongest))
      ->capture_default_str();
  command->add_option("--longest", options->longest, "The most tokens that a guess goes by")
      ->check(CLI::Range(1, NgramTable::kLongest))
      ->capture_default_str();
  command
      ->add_option("--contexts", options->contexts,
                   "Runs of tokens to remember, of each length: a power of two")
      ->check(CLI::Range(int64_t{4}, NgramTable::kMostContexts))
      ->capture_default_str();
  command->footer(
      "A recipe drafts with the file where its [drafter] says kind = \"ngram\" and table = \"FILE\". Only "
      "the\n"
      "speed depends on it, never the text. The rarest runs are left out where there is no room for all; a\n"
      "context takes 32 bytes of memory.\n"
      "\n"
      "Example:\n"
      "  verbatim ngrams models/target src/*.py -o /tmp/python.ngrams --longest 4");
  command->callback([options] { run_ngrams(*options); });
}

}  // namespace verbatim::app
