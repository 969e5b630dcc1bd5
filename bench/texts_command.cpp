#include <fmt/format.h>

#include <memory>

#include "app/command_line.h"
#include "app/load_model.h"
#include "app/model_options.h"
#include "app/progress.h"
#include "app/prompt_file.h"
#include "app/text_io.h"
#include "base/sha256.h"
#include "bench/commands.h"
#include "verbatim/verbatim.h"

namespace verbatim::bench {

namespace {

/// The number of sequences that decode side by side, which changes no text.
constexpr int32_t kBatch = 8;

struct Options {
  std::string model;
  std::string prompts;
  int64_t limit = 0;
  int64_t tokens = 32;
  std::vector<std::string> recipes = {"plain", "auto", "quantspec"};
  std::vector<float> temperatures = {0.0f, 0.8f};
  int32_t threads = 0;
};

std::string digest_of(const std::string& text) {
  return hexadecimal(Sha256().add(std::as_bytes(std::span(text))).digest());
}

/// The tokens that follow each prompt at each temperature, one line each.
std::string texts_of(const Options& options, const Recipe& recipe, const app::PromptSet& set) {
  const Model model =
      app::load_model(options.model, ModelOptions{.recipes = {recipe}, .threads = options.threads});
  Engine engine(model, {.max_batch = kBatch, .prompt_cache = false, .threads = options.threads});
  engine.prepare(recipe, [](double fraction) { app::show_progress("measuring passes", fraction); });
  std::vector<TokenStream> streams;
  for (const float temperature : options.temperatures) {
    for (const std::string& prompt : set.prompts) {
      GenerateOptions generate;
      generate.max_tokens = options.tokens;
      generate.ignore_eos = true;
      generate.sampling.temperature = temperature;
      generate.sampling.seed = streams.size();
      streams.push_back(engine.submit({model.encode(prompt), generate, recipe}));
    }
  }
  std::string texts;
  for (TokenStream& stream : streams) {
    texts += fmt::format("{}\n", fmt::join(stream.wait().tokens, " "));
    app::show_progress(recipe.name,
                       static_cast<double>(&stream - streams.data()) / static_cast<double>(streams.size()));
  }
  app::end_progress();
  return texts;
}

void run(const Options& options) {
  const app::PromptSet set = app::read_prompts(options.prompts, options.limit);
  std::vector<Recipe> recipes;
  for (const std::string& name : options.recipes) recipes.push_back(load_recipe(name));
  std::string all;
  for (const Recipe& recipe : recipes) {
    const std::string texts = texts_of(options, recipe, set);
    app::write_out(fmt::format("{}  {}\n", digest_of(texts), recipe.name));
    all += fmt::format("{}\n{}", recipe.name, texts);
  }
  app::write_out(fmt::format("{}  all\n", digest_of(all)));
}

}  // namespace

void add_texts(app::Command program) {
  auto options = std::make_shared<Options>();
  app::Command command =
      program.add_command("texts", "Print a SHA-256 of what a model says, to compare machines with");
  command.add_option("MODEL", options->model, "A directory in Hugging Face layout, a .gguf or a .vbt file")
      .required();
  command.add_option("--prompts", options->prompts, "A file of prompts, one JSON object a line")
      .type_name("FILE")
      .required();
  command.add_option("--limit", options->limit, "Take only the first prompts; 0: all")
      .show_default()
      .range(int64_t{0}, int64_t{1} << 24);
  command.add_option("-n,--max-tokens", options->tokens, "Tokens after each prompt")
      .show_default()
      .range(int64_t{1}, int64_t{1} << 24);
  command.add_list("--recipes", options->recipes, "Recipes, each with a SHA-256 of its own")
      .type_name("LIST")
      .show_default("plain,auto,quantspec");
  command.add_list("--temperatures", options->temperatures, "Temperatures, each with every prompt")
      .type_name("LIST")
      .show_default("0,0.8");
  command.add_option("--threads", options->threads, "Threads to compute with; without it one per processor")
      .range(1, 4096);
  app::add_portable(command);
  command.footer(
      "Examples:\n"
      "  verbatim-bench texts models/target --prompts tests/data/prompts.jsonl --limit 40 --portable\n"
      "  VERBATIM_ISA=scalar verbatim-bench texts models/target --prompts tests/data/prompts.jsonl "
      "--portable");
  command.callback([options] { run(*options); });
}

}  // namespace verbatim::bench
