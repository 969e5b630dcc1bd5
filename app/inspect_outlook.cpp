#include "inspect_outlook.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "memory_units.h"
#include "section.h"

namespace verbatim::app {

namespace {

using nlohmann::ordered_json;

/// The contexts to show the memory of: those asked for, or four that end with the model's own.
std::vector<int64_t> shown_contexts(const ModelReport& report, const std::vector<int64_t>& asked) {
  if (!asked.empty()) return asked;
  std::vector<int64_t> contexts;
  for (int64_t context = report.context; context > 0 && contexts.size() < 4; context /= 4)
    contexts.insert(contexts.begin(), context);
  return contexts;
}

/// A number of tokens per second: three digits, and no fraction from a hundred on.
std::string rate_text(double rate) {
  return rate < 100 ? fmt::format("{:.3g}", rate) : grouped(std::llround(rate));
}

}  // namespace

void add_memory_section(std::string& out, const ModelReport& report, const std::vector<int64_t>& contexts) {
  const MemoryEstimate& memory = report.memory;
  Section needs(out, "memory it will take");
  needs.line("packed weights", "{:>10}", human_bytes(memory.full));
  if (memory.pass < memory.full)
    needs.line("for one token", "{:>10}  with the experts that it goes through", human_bytes(memory.pass));
  if (memory.mxfp4 > 0) {
    needs.line("MXFP4 beside them", "{:>10}  for recipes that draft with MXFP4", human_bytes(memory.mxfp4));
  }
  needs.line("KV cache", "{:>10}  per token", human_bytes(memory.kv_per_token));
  for (const int64_t context : shown_contexts(report, contexts)) {
    needs.line("", "{:>10}  with weights and a context of {} tokens",
               human_bytes(memory_with_context(memory, context)), grouped(context));
  }
}

void add_outlook_section(std::string& out, const ModelReport& report, const Outlook& outlook) {
  Section section(out, "what to expect here");
  if (outlook.available_memory) section.line("free memory", "{}", human_bytes(*outlook.available_memory));
  if (outlook.read_bandwidth > 0) {
    section.line("one sequence", "at most {} tokens/s with plain decoding: memory is read at {}/s",
                 rate_text(outlook.tokens_per_second), human_bytes(outlook.read_bandwidth));
  }
  section.line("a prompt", "about {} tokens/s by products in BF16, at {:.2g} TFLOP/s",
               rate_text(outlook.prompt_tokens_per_second), outlook.operations * 1e-12);
  for (const RecipeOutlook& recipe : outlook.recipes) {
    const std::string weights = human_bytes(recipe.weight_bytes);
    if (!recipe.longest_context) {
      section.line(recipe.name.c_str(), "{} of weights", weights);
    } else if (*recipe.longest_context == 0) {
      section.line(recipe.name.c_str(), "does not fit: {} of weights", weights);
    } else if (*recipe.longest_context < report.context) {
      section.line(recipe.name.c_str(), "fits: {} of weights, and some {} tokens of context", weights,
                   grouped(*recipe.longest_context));
    } else {
      section.line(recipe.name.c_str(), "fits: {} of weights, and the whole context", weights);
    }
  }
  section.line("", "`verbatim bench decode MODEL` measures how fast recipes are");
}

ordered_json outlook_json(const ModelReport& report, const Outlook& outlook,
                          const std::vector<int64_t>& contexts) {
  ordered_json memory = ordered_json::array();
  for (const int64_t context : shown_contexts(report, contexts))
    memory.push_back({{"context", context}, {"bytes", memory_with_context(report.memory, context)}});
  ordered_json recipes = ordered_json::array();
  for (const RecipeOutlook& recipe : outlook.recipes) {
    recipes.push_back({{"recipe", recipe.name},
                       {"weight_bytes", recipe.weight_bytes},
                       {"longest_context",
                        recipe.longest_context ? ordered_json(*recipe.longest_context) : ordered_json()}});
  }
  return {{"available_memory",
           outlook.available_memory ? ordered_json(*outlook.available_memory) : ordered_json()},
          {"read_bandwidth", outlook.read_bandwidth},
          {"operations", outlook.operations},
          {"most_tokens_per_second", outlook.tokens_per_second},
          {"prompt_tokens_per_second", outlook.prompt_tokens_per_second},
          {"memory", std::move(memory)},
          {"recipes", std::move(recipes)}};
}

}  // namespace verbatim::app
