#include "bench/structures_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/load_model.h"
#include "app/median.h"
#include "app/progress.h"
#include "app/text_io.h"
#include "base/error.h"
#include "verbatim/verbatim.h"

namespace verbatim::bench {

namespace {

constexpr float kTemperatures[] = {0.0f, 1.0f};

/// What was generated in one round with one recipe at one temperature.
struct Sums {
  double tokens = 0;  // those after the first of a reply, which belongs to the prompt's time
  double characters = 0;
  double passes = 0;
  double seconds = 0;
  double forced = 0;
  double forced_kept = 0;

  void add(const GenerateResult& result) {
    const Stats& stats = result.stats;
    tokens += static_cast<double>(stats.generated_tokens - 1);
    characters += static_cast<double>(
        std::count_if(result.text.begin(), result.text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
    passes += static_cast<double>(stats.target_passes);
    seconds += stats.seconds_decode;
    forced += static_cast<double>(stats.structure_drafted);
    forced_kept += static_cast<double>(stats.structure_accepted);
  }
};

/// The rounds of structured replies and of free text.
struct Case {
  std::vector<Sums> structured;
  std::vector<Sums> free;
};

template <typename Value>
double middle(const std::vector<Sums>& rounds, Value value) {
  std::vector<double> values;
  for (const Sums& round : rounds) values.push_back(value(round));
  return app::median(std::move(values));
}

std::string shown(const char* name, const std::vector<Sums>& rounds) {
  return fmt::format("  {:<11}{:>10.1f}{:>14.1f}{:>17.2f}\n", name,
                     middle(rounds, [](const Sums& s) { return s.tokens / s.seconds; }),
                     middle(rounds, [](const Sums& s) { return s.characters / s.seconds; }),
                     middle(rounds, [](const Sums& s) { return s.tokens / s.passes; }));
}

std::string shown(const Case& measured) {
  std::vector<double> tokens;
  std::vector<double> characters;
  for (size_t i = 0; i < measured.free.size(); ++i) {
    const Sums& structured = measured.structured[i];
    const Sums& free = measured.free[i];
    tokens.push_back(structured.tokens / structured.seconds * free.seconds / free.tokens);
    characters.push_back(structured.characters / structured.seconds * free.seconds / free.characters);
  }
  const Sums& last = measured.structured.back();
  return shown("structured", measured.structured) + shown("free text", measured.free) +
         fmt::format(
             "  ratio      {:>10.2f}{:>14.2f}{:>17.2f}   {:.0f} of {:.0f} drafted tokens of forced text "
             "kept\n",
             app::median(tokens), app::median(characters),
             middle(measured.structured, [](const Sums& s) { return s.tokens / s.passes; }) /
                 middle(measured.free, [](const Sums& s) { return s.tokens / s.passes; }),
             last.forced_kept, last.forced);
}

/// Generates one structured reply and free text of its length, each in a session of its own: drafters
/// remember what a session said before.
void generate_pair(const StructuresSpeedPlan& plan, const Model& model, size_t i, float temperature,
                   const Recipe& recipe, Sums& structured, Sums& free) {
  const auto prompt = model.encode(plan.prompts[i % plan.prompts.size()]);
  GenerateOptions options;
  options.sampling.temperature = temperature;
  options.sampling.seed = i;
  options.max_tokens = plan.max_tokens;
  options.structure = Structure::json_schema(plan.schemas[i]);
  const auto generate = [&] { return Session(model, 0, plan.threads).generate(prompt, options, recipe); };
  const GenerateResult reply = generate();
  structured.add(reply);
  options.structure.reset();
  options.ignore_eos = true;
  options.max_tokens = reply.stats.generated_tokens;
  free.add(generate());
}

}  // namespace

std::vector<std::string> schemas_of_fixed_keys(const std::string& text, size_t limit) {
  std::vector<std::string> found;
  for (size_t at = 0; at < text.size() && found.size() < limit;) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const auto schema = nlohmann::json::parse(line, nullptr, false);
    if (!schema.is_object() || schema.value("additionalProperties", nlohmann::json()) != false) continue;
    const auto properties = schema.value("properties", nlohmann::json::object());
    const auto required = schema.value("required", nlohmann::json::array());
    if (properties.size() >= 2 && required.size() == properties.size()) found.push_back(line);
  }
  return found;
}

void measure_structures_speed(const StructuresSpeedPlan& plan) {
  if (plan.schemas.empty())
    fail(ErrorKind::kUsage, "no schema is an object of fixed keys: give another file");
  if (plan.prompts.empty()) fail(ErrorKind::kUsage, "the file of prompts has none: give another one");
  const std::vector<Recipe> recipes = {load_recipe("plain"), load_recipe("auto")};
  const Model model = app::load_model(plan.model, ModelOptions{.recipes = recipes, .threads = plan.threads});
  std::vector<std::vector<Case>> cases(std::size(kTemperatures), std::vector<Case>(recipes.size()));
  // The first round is not counted: masks are found in it.
  for (int32_t round = 0; round <= plan.rounds; ++round) {
    for (size_t t = 0; t < std::size(kTemperatures); ++t) {
      for (size_t r = 0; r < recipes.size(); ++r) {
        Sums structured;
        Sums free;
        for (size_t i = 0; i < plan.schemas.size(); ++i)
          generate_pair(plan, model, i, kTemperatures[t], recipes[r], structured, free);
        if (round == 0) continue;
        cases[t][r].structured.push_back(structured);
        cases[t][r].free.push_back(free);
      }
    }
    app::show_progress("measuring", static_cast<double>(round + 1) / (plan.rounds + 1));
  }
  app::end_progress();
  std::string out =
      fmt::format("{} schemas of fixed keys, each with free text of as many tokens; medians of {} rounds\n",
                  plan.schemas.size(), plan.rounds);
  for (size_t t = 0; t < std::size(kTemperatures); ++t) {
    for (size_t r = 0; r < recipes.size(); ++r) {
      out += fmt::format("\n{}, temperature {}\n  {:<11}{:>10}{:>14}{:>17}\n", recipes[r].name,
                         kTemperatures[t], "", "tokens/s", "characters/s", "tokens per pass");
      out += shown(cases[t][r]);
    }
  }
  app::write_out(out);
}

}  // namespace verbatim::bench
