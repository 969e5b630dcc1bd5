#include "model_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "command_line.h"
#include "fail.h"
#include "strict_options.h"

namespace verbatim::app {

void add_model(Command command, CommonOptions& options) {
  command.add_option("MODEL", options.model, "A directory in Hugging Face layout, a .gguf or a .vbt file")
      .required();
}

void add_decoding(Command command, CommonOptions& options) {
  const auto add = [&command](const char* group, const char* name, auto& value, const char* what) {
    return command.add_option(name, value, what).group(group);
  };
  const char* const decoding = "Decoding";
  add(decoding, "--recipe", options.recipe,
      "A name from `verbatim recipes` or a .toml file; without it auto");
  add(decoding, "--cache", options.cache,
      "Keys and values in bf16, f16, f32, int8 or hierarchical[:option=value,...]");
  add(decoding, "--draft-model", options.draft_model, "The model that recipes with a small model draft with")
      .type_name("MODEL");
  add(decoding, "--draft-length", options.draft_length,
      "The most tokens to draft per step; without it the recipe says")
      .range(1, 64);
  add(decoding, "--draft-threshold", options.draft_threshold,
      "Stop drafting after a token less probable than this; without it the recipe says")
      .range(0.0, 1.0);
  command
      .add_list("--formats", options.formats,
                "Formats to pack into, or to take from a .vbt; without it what the recipe needs")
      .type_name("LIST")
      .group(decoding);
  add(decoding, "--threads", options.threads, "Threads to compute with; without it one per core")
      .range(1, 4096);
  add_portable(command).group(decoding);
  add_sampling(command, options.sampling);
}

Option add_portable(Command command) {
  return command.add_action("--portable", use_portable_kernels,
                            "Compute so that every machine gives the same bytes");
}

void add_sampling(Command command, SamplingOptions& choice) {
  const auto add = [&command](const char* name, auto& value, const char* what) {
    command.add_option(name, value, what).group("Sampling").show_default();
  };
  add("--temperature", choice.temperature, "0 takes the likeliest token, more is more varied");
  add("--top-k", choice.top_k, "Keep the k likeliest tokens; 0 is off");
  add("--top-p", choice.top_p, "Keep the likeliest tokens that together reach this probability; 1 is off");
  add("--min-p", choice.min_p, "Keep tokens at least this fraction as likely as the likeliest; 0 is off");
  add("--repetition-penalty", choice.repetition_penalty,
      "Above 1, tokens already there become less likely; 1 is off");
  add("--presence-penalty", choice.presence_penalty,
      "Above 0, tokens said already become less likely; 0 is off");
  add("--frequency-penalty", choice.frequency_penalty,
      "Above 0, tokens become less likely the more often they were said; 0 is off");
  add("--seed", choice.seed, "The same seed gives the same text");
}

ModelOptions CommonOptions::load_options(std::vector<Recipe> recipes) const {
  for (const std::string& name : formats) {
    if (name != "full" && name != "draft") from_command_line([&] { require_format(name, "--formats"); });
  }
  return {.recipes = std::move(recipes), .formats = formats, .threads = threads};
}

Recipe chosen_recipe(const CommonOptions& options) {
  Recipe recipe = load_recipe(options.recipe.empty() ? "auto" : options.recipe);
  if (!options.cache.empty()) {
    recipe.cache = from_command_line([&] { return parse_cache(options.cache, "--cache"); });
  }
  if (recipe.plain()) return recipe;
  if (options.draft_length > 0) recipe.levels.front().length = options.draft_length;
  if (options.draft_threshold >= 0.0f) recipe.levels.front().threshold = options.draft_threshold;
  return recipe;
}

void check_names(const char* what, const std::vector<std::string>& names,
                 const std::vector<std::string>& known) {
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    fail(ErrorKind::kUsage, "there is no {} \"{}\"; known are {}", what, name, fmt::join(known, ", "));
  }
}

}  // namespace verbatim::app
