#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/load_model.h"
#include "app/prompt_file.h"
#include "app/text_io.h"
#include "base/error.h"
#include "bench/commands.h"
#include "bench/structures_speed.h"
#include "verbatim/verbatim.h"

namespace verbatim::bench {

namespace {

using nlohmann::ordered_json;

struct Options {
  std::string model;
  std::string schemas;
  int32_t seeds = 5;
  int32_t every = 1;
  int32_t batch = 16;
  int64_t max_tokens = 400;
  int32_t threads = 0;
  std::string speed;
  int32_t limit = 10;
  int32_t rounds = 5;
};

/// A prompt for each seed, so that greedy replies differ too.
constexpr const char* kPrompts[] = {"The answer in JSON:\n", "def example():\n    return ",
                                    "Here is a record of the data base: ",
                                    "Once upon a time there was a small ", "{\"request\": \"an example\"}\n"};

/// A reply that was asked for with each recipe.
struct Reply {
  size_t schema = 0;
  int32_t seed = 0;
  float temperature = 0;
  std::vector<TokenStream> streams;  // by recipe
};

ordered_json to_json(const Reply& reply, const std::vector<GenerateResult>& results,
                     const std::vector<Recipe>& recipes) {
  ordered_json object = {{"schema", reply.schema}, {"seed", reply.seed}, {"temperature", reply.temperature}};
  object["text"] = results.front().text;
  object["finish"] = finish_reason_name(results.front().stats.finish);
  object["identical"] = std::all_of(results.begin(), results.end(), [&](const GenerateResult& each) {
    return each.text == results.front().text && each.tokens == results.front().tokens;
  });
  object["recipes"] = ordered_json::array();
  for (size_t i = 0; i < recipes.size(); ++i) {
    const Stats& stats = results[i].stats;
    object["recipes"].push_back({{"recipe", recipes[i].name},
                                 {"text", results[i].text},
                                 {"tokens", stats.generated_tokens},
                                 {"passes", stats.target_passes},
                                 {"structure_drafted", stats.structure_drafted},
                                 {"structure_accepted", stats.structure_accepted}});
  }
  return object;
}

std::vector<Structure> read_schemas(const std::string& file) {
  std::vector<Structure> schemas;
  const std::string text = app::read_text(file);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) schemas.push_back(Structure::json_schema(std::string_view(text).substr(at, end - at)));
    at = end + 1;
  }
  return schemas;
}

void measure_speed(const Options& options) {
  StructuresSpeedPlan plan{
      .model = options.model,
      .schemas = schemas_of_fixed_keys(app::read_text(options.schemas), static_cast<size_t>(options.limit)),
      .prompts = app::read_prompts(options.speed).prompts,
      .rounds = options.rounds,
      .max_tokens = options.max_tokens,
      .threads = options.threads};
  measure_structures_speed(plan);
}

void run(const Options& options) {
  if (!options.speed.empty()) return measure_speed(options);
  const std::vector<Recipe> recipes = {load_recipe("plain"), load_recipe("auto")};
  const Model model =
      app::load_model(options.model, ModelOptions{.recipes = recipes, .threads = options.threads});
  Engine engine(
      model, {.max_batch = options.batch, .capacity = options.max_tokens + 64, .threads = options.threads});
  const std::vector<Structure> schemas = read_schemas(options.schemas);
  std::vector<Reply> waiting;
  const auto finish = [&] {
    for (Reply& reply : waiting) {
      std::vector<GenerateResult> results;
      for (TokenStream& stream : reply.streams) results.push_back(stream.wait());
      app::write_out(
          to_json(reply, results, recipes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
          "\n");
    }
    waiting.clear();
  };
  for (size_t i = 0; i < schemas.size(); i += static_cast<size_t>(options.every)) {
    for (int32_t seed = 0; seed < options.seeds; ++seed) {
      for (const float temperature : {0.0f, 1.0f}) {
        Reply& reply = waiting.emplace_back();
        reply = {.schema = i, .seed = seed, .temperature = temperature, .streams = {}};
        GenerateOptions generate;
        generate.sampling.temperature = temperature;
        generate.sampling.seed = static_cast<uint64_t>(seed);
        generate.max_tokens = options.max_tokens;
        generate.structure = schemas[i];
        const auto prompt = model.encode(kPrompts[static_cast<size_t>(seed) % std::size(kPrompts)]);
        for (const Recipe& recipe : recipes)
          reply.streams.push_back(engine.submit({prompt, generate, recipe}));
      }
    }
    if (waiting.size() >= 100) finish();
  }
  finish();
}

}  // namespace

void add_structures(app::Command program) {
  auto options = std::make_shared<Options>();
  app::Command command = program.add_command(
      "structures", "Replies to JSON schemas, plain and speculative: a JSON object a line, or their speed");
  command.add_option("MODEL", options->model, "A directory in Hugging Face layout, a .gguf or a .vbt file")
      .required();
  command.add_option("SCHEMAS", options->schemas, "A file with a JSON schema on each line").required();
  command.add_option("--seeds", options->seeds, "Replies per schema, temperature and recipe")
      .show_default()
      .range(1, 1000);
  command.add_option("--every", options->every, "Take each n-th schema alone")
      .show_default()
      .range(1, 1000000);
  command.add_option("--batch", options->batch, "Sequences that share passes").show_default().range(1, 1024);
  command.add_option("-n,--max-tokens", options->max_tokens, "Tokens of a reply at most")
      .show_default()
      .range(1, 100000);
  command.add_option("--threads", options->threads, "Threads to compute with; without it one per processor")
      .range(1, 4096);
  command
      .add_option(
          "--speed", options->speed,
          "Instead of printing replies, compare their speed with that of free text behind the prompts of a "
          "file, one at a time")
      .type_name("PROMPTS");
  command.add_option("--limit", options->limit, "With --speed: the first schemas of fixed keys to take")
      .show_default()
      .range(1, 1000);
  command.add_option("--rounds", options->rounds, "With --speed: how often each reply is timed")
      .show_default()
      .range(1, 1000);
  command.footer(
      "Examples:\n"
      "  verbatim-bench structures models/target tests/data/schemas.jsonl > replies.jsonl\n"
      "  verbatim-bench structures models/target tests/data/schemas.jsonl --every 10 --seeds 1\n"
      "  verbatim-bench structures models/target tests/data/schemas.jsonl --speed tests/data/prompts.jsonl");
  command.callback([options] { run(*options); });
}

}  // namespace verbatim::bench
