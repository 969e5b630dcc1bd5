#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/median.h"
#include "commands.h"
#include "load_model.h"
#include "model_options.h"
#include "progress.h"
#include "recipe_words.h"

namespace verbatim::app {

namespace {

struct Options {
  CommonOptions common;
  std::string prompt = "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n";
  int64_t max_tokens = 96;
  int32_t rounds = 3;
};

/// In a session of its own: what drafters learnt from the text before would make this one too easy.
GenerateResult generate_once(const Model& model, const std::optional<Model>& draft_model,
                             const Options& options, const Recipe& recipe, const Session::OnText& on_text) {
  const std::vector<int32_t> tokens = model.encode(options.prompt);
  GenerateOptions generate;
  generate.sampling = options.common.sampling;
  generate.max_tokens = options.max_tokens;
  Session session(model, static_cast<int64_t>(tokens.size()) + options.max_tokens, options.common.threads);
  if (draft_model) session.set_draft_model(*draft_model);
  session.prepare(recipe, show_measuring);
  end_progress();
  return session.generate(tokens, generate, recipe, on_text);
}

/// Decodes the same prompt plainly and speculatively, in turns so that a drifting machine treats both alike.
void demo(const Options& options) {
  const Recipe speculative = chosen_recipe(options.common);
  Recipe plain = load_recipe("plain");
  plain.reading = speculative.reading;
  const Model model = load_model(options.common.model, options.common.load_options({plain, speculative}));
  const std::optional<Model> draft_model = load_draft_model(options.common, speculative);

  fmt::print("The model continues:\n\n{}", options.prompt);
  const auto show = [](std::string_view piece) {
    fmt::print("{}", piece);
    std::fflush(stdout);
    return true;
  };
  std::vector<double> plain_speed;
  std::vector<double> speculative_speed;
  std::string text;
  Stats stats;
  bool identical = true;
  for (int32_t round = 0; round < options.rounds; ++round) {
    const GenerateResult first = generate_once(model, draft_model, options, plain,
                                               round == 0 ? Session::OnText(show) : Session::OnText());
    const GenerateResult second = generate_once(model, draft_model, options, speculative, {});
    identical = identical && first.text == second.text && first.tokens == second.tokens;
    plain_speed.push_back(first.stats.tokens_per_second());
    speculative_speed.push_back(second.stats.tokens_per_second());
    text = first.text;
    stats = second.stats;
  }
  const double plain_median = median(plain_speed);
  const double speculative_median = median(speculative_speed);
  fmt::print("\n\n{:<12} {:8.1f} tokens/s\n", plain.name, plain_median);
  fmt::print(
      "{:<12} {:8.1f} tokens/s   {:.2f} times plain; {:.0f} % of the drafts accepted, {:.2f} tokens per "
      "pass\n",
      speculative.name, speculative_median, plain_median > 0 ? speculative_median / plain_median : 0.0,
      100.0 * stats.acceptance_rate(), stats.mean_accepted_length());
  if (!speculative.lossless()) {
    fmt::print("the texts {}; {}\n", identical ? "agree" : "differ", lossy_warning(speculative));
    return;
  }
  if (!identical)
    fail(ErrorKind::kBadInput, "the texts differ: that is a defect in Verbatim, please report it");
  fmt::print("the bytes agree: {} tokens, {} bytes, the same in {} rounds of both\n", stats.generated_tokens,
             text.size(), options.rounds);
}

}  // namespace

void add_demo(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = program.add_subcommand(
      "demo", "Decode a prompt plainly and speculatively, and compare bytes and speed");
  add_model(*command, options->common);
  command->add_option("-p,--prompt", options->prompt, "The text to continue");
  command->add_option("-n,--max-tokens", options->max_tokens, "Tokens to generate at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--rounds", options->rounds, "How often to decode each way; speeds are medians")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  add_decoding(*command, options->common);
  command->footer("Example:\n  verbatim demo models/target -n 200");
  command->callback([options] { demo(*options); });
}

}  // namespace verbatim::app
