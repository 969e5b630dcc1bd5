#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "command_line.h"
#include "commands.h"
#include "describe_recipe.h"
#include "fail.h"
#include "load_model.h"
#include "median.h"
#include "model_options.h"
#include "progress.h"
#include "text_io.h"

namespace verbatim::app {

namespace {

using Clock = std::chrono::steady_clock;

/// All lines of the demonstration together are to take about this long, however slow the machine is.
constexpr double kSeconds = 12.0;
/// A line's answers are no longer than this if the machine is fast, and no shorter than this if it is slow.
constexpr int64_t kMostTokens = 96;
constexpr int64_t kFewestTokens = 8;
constexpr int32_t kMostRounds = 9;

struct Prompt {
  std::string kind;
  std::string text;
};

/// Text of three kinds, since how often drafts are accepted depends on the text.
const std::vector<Prompt> kPrompts = {
    {"code",
     "def word_counts(path):\n    \"\"\"Count how often each word of a text file occurs, the most frequent "
     "first.\"\"\"\n"},
    {"sum",
     "Question: A baker bakes 12 trays of 18 rolls and sells 7 bags of 24 rolls. How many rolls are left?\n"
     "Answer:"},
    {"prose", "The lighthouse stood at the end of a long road. Every evening the keeper"},
};

struct Options {
  CommonOptions common;
  std::string prompt;      // none: kPrompts
  int64_t max_tokens = 0;  // 0: as many as the time allows
  int32_t rounds = 0;      // 0: as many as the time allows
  bool temperature_given = false;
  bool json = false;
};

/// What was measured of one prompt at one temperature.
struct Line {
  std::string kind;
  float temperature = 0.0f;
  int64_t tokens = 0;
  int64_t bytes = 0;
  std::vector<double> plain_speeds;
  std::vector<double> speeds;
  double acceptance_rate = 0.0;
  double tokens_per_pass = 0.0;
  bool identical = true;

  double ratio() const;
};

double Line::ratio() const {
  const double plain = median(plain_speeds);
  return plain > 0.0 ? median(speeds) / plain : 0.0;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The models and recipes that every line is measured with.
struct Contest {
  Model model;
  std::optional<Model> draft_model;
  Recipe plain;
  Recipe speculative;
};

Contest load(const Options& options) {
  Recipe speculative = chosen_recipe(options.common);
  Recipe plain = load_recipe("plain");
  plain.reading = speculative.reading;
  Model model = load_model(options.common.model, options.common.load_options({plain, speculative}));
  std::optional<Model> draft_model = load_draft_model(options.common, speculative);
  return {std::move(model), std::move(draft_model), std::move(plain), std::move(speculative)};
}

/// Generates in a session of its own: what drafters learnt from the text before would make this one too easy.
GenerateResult generate_once(const Contest& contest, const Options& options, const Recipe& recipe,
                             const std::string& prompt, float temperature, int64_t max_tokens) {
  const std::vector<int32_t> tokens = contest.model.encode(prompt);
  GenerateOptions generate;
  generate.sampling = options.common.sampling;
  generate.sampling.temperature = temperature;
  generate.max_tokens = max_tokens;
  generate.ignore_eos = true;
  Session session(contest.model, static_cast<int64_t>(tokens.size()) + max_tokens, options.common.threads);
  if (contest.draft_model) session.set_draft_model(*contest.draft_model);
  session.prepare(recipe, show_measuring);
  end_progress();
  return session.generate(tokens, generate, recipe);
}

/// Decodes a prompt both ways in turns, so that a machine whose speed drifts treats both alike: `rounds`
/// times or, if that is 0, until about so many seconds have passed.
Line measure(const Contest& contest, const Options& options, const Prompt& prompt, float temperature,
             int64_t max_tokens, double seconds) {
  Line line;
  line.kind = prompt.kind;
  line.temperature = temperature;
  const Clock::time_point start = Clock::now();
  for (int32_t round = 0; round < (options.rounds > 0 ? options.rounds : kMostRounds); ++round) {
    // Another round is begun only if one that takes as long as those before it still fits.
    if (options.rounds == 0 && round > 0 && seconds_since(start) * (round + 1) / round > seconds) break;
    const GenerateResult plain =
        generate_once(contest, options, contest.plain, prompt.text, temperature, max_tokens);
    const GenerateResult speculative =
        generate_once(contest, options, contest.speculative, prompt.text, temperature, max_tokens);
    line.identical = line.identical && plain.text == speculative.text && plain.tokens == speculative.tokens;
    line.plain_speeds.push_back(plain.stats.tokens_per_second());
    line.speeds.push_back(speculative.stats.tokens_per_second());
    line.tokens = speculative.stats.generated_tokens;
    line.bytes = static_cast<int64_t>(speculative.text.size());
    line.acceptance_rate = speculative.stats.acceptance_rate();
    line.tokens_per_pass = speculative.stats.mean_accepted_length();
  }
  return line;
}

/// How many tokens an answer may have so that two answers for each line take half of the time.
int64_t tokens_in_time(const Contest& contest, const Options& options, size_t lines) {
  const Clock::time_point start = Clock::now();
  generate_once(contest, options, contest.plain, kPrompts.front().text, 0.0f, kFewestTokens / 2);
  const double per_token = seconds_since(start) / (kFewestTokens / 2.0);
  const double answers = 2.0 * static_cast<double>(lines);
  return std::clamp(static_cast<int64_t>(0.5 * kSeconds / (answers * per_token)), kFewestTokens, kMostTokens);
}

std::vector<float> temperatures(const Options& options) {
  if (options.temperature_given) return {options.common.sampling.temperature};
  return {0.0f, 0.8f};
}

void print_head(const Recipe& speculative) {
  fmt::print("{:<8} {:<13} {:>14} {:>14} {:>7} {:>10}   {}\n", "prompt", "temperature", "plain",
             speculative.name, "ratio", "accepted", "the texts");
  std::fflush(stdout);
}

void print_line(const Line& line) {
  const auto speed = [](const std::vector<double>& speeds) {
    return fmt::format("{:.1f} tokens/s", median(speeds));
  };
  fmt::print("{:<8} {:<13} {:>14} {:>14} {:>7.2f} {:>8.0f} %   {}\n", line.kind, line.temperature,
             speed(line.plain_speeds), speed(line.speeds), line.ratio(), 100.0 * line.acceptance_rate,
             line.identical ? "agree" : "differ");
  std::fflush(stdout);
}

nlohmann::ordered_json to_json(const Line& line) {
  return {{"kind", line.kind},
          {"temperature", std::round(1e4 * static_cast<double>(line.temperature)) / 1e4},
          {"tokens", line.tokens},
          {"bytes", line.bytes},
          {"rounds", line.speeds.size()},
          {"plain_tokens_per_second", median(line.plain_speeds)},
          {"tokens_per_second", median(line.speeds)},
          {"speedup", line.ratio()},
          {"acceptance_rate", line.acceptance_rate},
          {"mean_accepted_length", line.tokens_per_pass},
          {"identical", line.identical}};
}

void print_json(const Options& options, const Recipe& speculative, const std::vector<Line>& lines) {
  nlohmann::ordered_json object;
  object["model"] = options.common.model;
  object["recipe"] = speculative.name;
  object["lossless"] = speculative.lossless();
  object["lines"] = nlohmann::ordered_json::array();
  for (const Line& line : lines) object["lines"].push_back(to_json(line));
  write_out(object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

/// The last line says in words whether the promise was kept.
void print_verdict(const Recipe& speculative, const std::vector<Line>& lines, bool identical) {
  if (!speculative.lossless()) {
    fmt::print("the texts {}; {}\n", identical ? "agree" : "differ", lossy_warning(speculative));
    return;
  }
  int64_t tokens = 0;
  int64_t bytes = 0;
  for (const Line& line : lines) {
    tokens += line.tokens;
    bytes += line.bytes;
  }
  fmt::print("the bytes agree: {} tokens, {} bytes, the same in every round of both\n", tokens, bytes);
}

void demo(const Options& options) {
  const Contest contest = load(options);
  const std::vector<Prompt> prompts =
      options.prompt.empty() ? kPrompts : std::vector<Prompt>{{"yours", options.prompt}};
  const std::vector<float> degrees = temperatures(options);
  const size_t count = prompts.size() * degrees.size();
  const int64_t max_tokens =
      options.max_tokens > 0 ? options.max_tokens : tokens_in_time(contest, options, count);

  if (!options.json) print_head(contest.speculative);
  std::vector<Line> lines;
  bool identical = true;
  for (const float temperature : degrees) {
    for (const Prompt& prompt : prompts) {
      lines.push_back(
          measure(contest, options, prompt, temperature, max_tokens, kSeconds / static_cast<double>(count)));
      identical = identical && lines.back().identical;
      if (!options.json) print_line(lines.back());
    }
  }
  if (options.json) print_json(options, contest.speculative, lines);
  if (contest.speculative.lossless() && !identical)
    fail(ErrorKind::kBadInput, "the texts differ: that is a defect in Verbatim, please report it");
  if (!options.json) print_verdict(contest.speculative, lines, identical);
}

}  // namespace

void add_demo(Command program) {
  auto options = std::make_shared<Options>();
  Command command =
      program.add_command("demo", "Decode prompts plainly and speculatively, and compare bytes and speed");
  add_model(command, options->common);
  command.add_option("-p,--prompt", options->prompt,
                     "The text to continue; without it code, a sum and prose");
  command
      .add_option("-n,--max-tokens", options->max_tokens,
                  "Tokens to generate for each; without it as many as seconds allow")
      .range(1, 1 << 20);
  command
      .add_option("--rounds", options->rounds,
                  "How often to decode each way; without it as seconds allow. Speeds are medians")
      .range(1, 1000);
  command.add_flag("--json", options->json, "Print one JSON object");
  add_decoding(command, options->common);
  command.footer("Example:\n  verbatim demo models/target -n 200");
  command.callback([options, command] {
    options->temperature_given = command.given("--temperature") > 0;
    demo(*options);
  });
}

}  // namespace verbatim::app
