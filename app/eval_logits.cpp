#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "command_line.h"
#include "commands.h"
#include "fail.h"
#include "load_model.h"
#include "model_options.h"
#include "progress.h"
#include "strict_options.h"
#include "text_io.h"
#include "token_list.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

namespace {

using Positions = std::vector<std::vector<TokenLogit>>;

struct Options {
  CommonOptions common;
  std::string file;
  TopLogitsOptions logits;
  std::string sensitivities;
  bool json = false;
};

/// The shortest decimal number that is read as this float again, with a mark that it is no integer.
std::string float_text(float value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

/// JSON has no infinity, and one would say nothing to a person.
void require_finite(const Positions& positions) {
  for (size_t i = 0; i < positions.size(); ++i) {
    for (const TokenLogit& each : positions[i]) {
      if (std::isfinite(each.logit)) continue;
      bad_input("the model gives token {} an infinite logit at position {}: are its weights in order?",
                each.token, i);
    }
  }
}

void print_json(const Positions& positions) {
  std::string out = "{\"positions\":[";
  for (size_t i = 0; i < positions.size(); ++i) {
    std::string tokens;
    std::string logits;
    for (const TokenLogit& each : positions[i]) {
      const char* const between = tokens.empty() ? "" : ",";
      tokens += fmt::format("{}{}", between, each.token);
      logits += between + float_text(each.logit);
    }
    out += fmt::format("{}{{\"tokens\":[{}],\"logits\":[{}]}}", i == 0 ? "" : ",", tokens, logits);
  }
  write_out(out + "]}\n");
}

/// Names a token: its id, and its spelling if the model has a vocabulary.
std::string token_name(const Model& model, int32_t token) {
  return model.has_vocabulary() ? fmt::format("{:>6}  {}", token, shown_name(model.piece(token)))
                                : fmt::format("{:>6}", token);
}

void print_text(const Model& model, const std::vector<int32_t>& tokens, const Positions& positions) {
  for (size_t i = 0; i < positions.size(); ++i) {
    std::string out = fmt::format("position {:>6}   {}\n", i, token_name(model, tokens[i]));
    for (const TokenLogit& each : positions[i]) {
      out += fmt::format("{:>15}   {}\n", float_text(each.logit), token_name(model, each.token));
    }
    write_out(out);
  }
}

void eval_logits(Options& options) {
  if (!options.common.cache.empty()) {
    options.logits.cache = from_command_line([&] { return parse_cache(options.common.cache, "--cache"); });
  }
  const std::string format = format_of_reading(options.logits.reading, "--reading");
  const std::string name = options.file == "-" ? "standard input" : options.file;
  const std::vector<int32_t> tokens = parse_token_list(read_text(options.file), name);
  if (tokens.empty()) bad_input("{} holds an empty list: there is nothing to evaluate", name);
  ModelOptions load;
  load.formats = options.common.formats.empty() ? std::vector{format} : options.common.formats;
  load.threads = options.common.threads;
  load.sensitivities = options.sensitivities;
  const Model model = load_model(options.common.model, std::move(load));
  options.logits.threads = options.common.threads;
  options.logits.progress = [](double fraction) { show_progress("reading the tokens", fraction); };
  const Positions positions = top_logits(model, tokens, options.logits);
  end_progress();
  require_finite(positions);
  options.json ? print_json(positions) : print_text(model, tokens, positions);
}

}  // namespace

void add_eval_logits(Command eval) {
  auto options = std::make_shared<Options>();
  Command command = eval.add_command("logits", "Show which tokens a model expects after each of a list");
  add_model(command, options->common);
  TopLogitsOptions& logits = options->logits;
  command
      .add_option("--tokens", options->file,
                  "A file with a JSON list of token ids, as `verbatim tokenize` makes; - is standard input")
      .type_name("FILE")
      .required();
  command.add_option("--top", logits.top, "How many tokens to show for each position")
      .show_default()
      .range(1, 1 << 24);
  command.add_flag("--json", options->json, "Print one JSON object");
  command.add_option("--reading", logits.reading, "How to read the weights: full, mxfp4-w4a8, ...")
      .show_default();
  command.add_option(
      "--cache", options->common.cache,
      "How keys and values are stored: bf16, f16, f32, int8 or hierarchical[:option=value,...]");
  command.add_option("--prefill-chunk", logits.prefill_chunk, "Tokens per pass")
      .show_default()
      .range(int64_t{1}, int64_t{1} << 20);
  command.add_option("--threads", options->common.threads, "Threads to compute with; without it one per core")
      .range(1, 4096);
  add_portable(command);
  const char* const packing = "Packing";
  command
      .add_list("--formats", options->common.formats,
                "Formats to pack the weights into; without it what the reading needs")
      .group(packing);
  command
      .add_option("--sensitivities", options->sensitivities,
                  "A .safetensors file of sensitivities, for squeeze3 and squeeze4")
      .type_name("FILE")
      .group(packing);
  command.footer(
      "A position's tokens are those to follow it, the best first, with the numbers of the model's output "
      "matrix.\n"
      "The list is taken as it stands: no token that begins a text is added.\n"
      "\n"
      "Examples:\n"
      "  verbatim eval logits models/target --tokens ids.json\n"
      "  verbatim eval logits models/target --tokens ids.json --top 3 --json\n"
      "  verbatim tokenize models/target 'def add(a, b):' --json | verbatim eval logits models/target "
      "--tokens -\n"
      "  verbatim eval logits models/target --tokens ids.json --reading mxfp4-w4a8 --cache int8");
  command.callback([options] { eval_logits(*options); });
}

}  // namespace verbatim::app
