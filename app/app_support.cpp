#include "app_support.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/input_file.h"
#include "checkpoint/checkpoint.h"
#include "container/container.h"
#include "engine/generation.h"
#include "formats/format.h"
#include "strict_options.h"

namespace verbatim::app {

namespace {

/// Far above any text that a model could be given.
constexpr size_t kLongestText = size_t{1} << 30;

/// The progress bar that is wanted now.
struct ProgressBar {
  std::string what;  ///< empty: none
  std::chrono::steady_clock::time_point start;
  bool visible = false;  ///< or, where there is no terminal, said
};
ProgressBar progress_bar;

/// Whether all matrices of an unpacked model are in BF16, as `mxbf16` wants them.
bool is_all_bf16(const std::string& model) {
  const Checkpoint checkpoint = open_checkpoint(model);
  return std::all_of(checkpoint.tensors.begin(), checkpoint.tensors.end(), [](const auto& named) {
    return named.second.shape.size() < 2 || named.second.dtype == DType::kBF16;
  });
}

}  // namespace

void add_model(CLI::App& command, CommonOptions& options) {
  command.add_option("MODEL", options.model, "A directory in Hugging Face layout, a .gguf or a .vbt file")
      ->required();
}

void add_decoding(CLI::App& command, CommonOptions& options) {
  const auto add = [&command](const char* group, const char* name, auto& value, const char* what) {
    return command.add_option(name, value, what)->group(group);
  };
  const char* const decoding = "Decoding";
  add(decoding, "--recipe", options.recipe,
      "A name from `verbatim recipes` or a .toml file; without it auto");
  add(decoding, "--cache", options.cache,
      "Keys and values in bf16, f16, int8 or hierarchical[:option=value,...]");
  add(decoding, "--draft-model", options.draft_model, "The model that recipes with a small model draft with")
      ->type_name("MODEL");
  add(decoding, "--draft-length", options.draft_length,
      "The most tokens to draft per step; without it the recipe says")
      ->check(CLI::Range(1, 64));
  add(decoding, "--draft-threshold", options.draft_threshold,
      "Stop drafting after a token less probable than this; without it the recipe says")
      ->check(CLI::Range(0.0, 1.0));
  add(decoding, "--formats", options.formats,
      "Formats to pack into, or to take from a .vbt; without it what the recipe needs")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LIST");
  add(decoding, "--threads", options.threads, "Threads to compute with; without it one per processor")
      ->check(CLI::Range(1, 4096));
  add_sampling(command, options.sampling);
}

void add_sampling(CLI::App& command, SamplingOptions& choice) {
  const auto add = [&command](const char* name, auto& value, const char* what) {
    command.add_option(name, value, what)->group("Sampling")->capture_default_str();
  };
  add("--temperature", choice.temperature, "0 takes the likeliest token, more is more varied");
  add("--top-k", choice.top_k, "Keep the k likeliest tokens; 0 is off");
  add("--top-p", choice.top_p, "Keep the likeliest tokens that together reach this probability; 1 is off");
  add("--min-p", choice.min_p, "Keep tokens at least this fraction as likely as the likeliest; 0 is off");
  add("--repetition-penalty", choice.repetition_penalty,
      "Above 1, tokens already there become less likely; 1 is off");
  add("--seed", choice.seed, "The same seed gives the same text");
}

std::vector<std::string> formats_for(const Recipe& recipe, const std::string& model) {
  const bool packed = is_packed(model);
  if (!recipe.scheme.empty()) {  // said before a model is packed in vain
    check_scheme(recipe,
                 packed ? open_container(model).header.config.quantization : QuantizationScheme::kNone);
  }
  // A planner takes what there is.
  if (recipe.planned && packed) return {};
  const std::vector<std::string> needed = recipe.formats();
  const bool nested = std::find(needed.begin(), needed.end(), "mxbf16") != needed.end();
  // `mxbf16` holds weights in BF16 alone; the same drafts in a store of their own serve any.
  if (recipe.planned && nested && !is_all_bf16(model)) return {"full", "mxfp4"};
  // Without drafts a packed file needs not be lossless: it is taken as it is then.
  if (recipe.plain() && packed && !open_container(model).exact()) return {};
  return needed;
}

std::vector<std::string> CommonOptions::load_formats(const Recipe& used) const {
  if (formats.empty()) return formats_for(used, model);
  for (const std::string& name : formats) {
    if (name != "full") from_command_line([&] { return parse_format(name, "--formats"); });
  }
  return formats;
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

Model load_model(const std::string& path, const std::vector<std::string>& formats, int32_t threads) {
  ModelOptions options;
  options.formats = formats;
  options.threads = threads;
  return load_model(path, std::move(options));
}

Model load_model(const std::string& path, ModelOptions options) {
  options.progress = [](double fraction) { show_progress("packing the weights", fraction); };
  Model model = Model::load(path, options);
  end_progress();
  for (const std::string& warning : model.warnings()) {
    say("verbatim: warning: {}\n", one_line(warning));
  }
  return model;
}

std::optional<Model> load_draft_model(const CommonOptions& options, const Recipe& recipe) {
  std::string path = options.draft_model;
  bool drafts = false;
  for (const DraftLevel& level : recipe.levels) {
    if (level.kind != DraftLevel::Kind::kModel) continue;
    drafts = true;
    if (path.empty()) path = level.model;
  }
  if (!drafts && !path.empty()) {
    fail(ErrorKind::kUsage,
         "the recipe {} drafts with no other model: leave out --draft-model, or name a "
         "recipe that does, as `verbatim recipes` lists them",
         recipe.name);
  }
  if (!drafts || (path.empty() && recipe.planned)) return std::nullopt;
  if (path.empty()) {
    fail(ErrorKind::kUsage, "the recipe {} drafts with another model: name one with --draft-model",
         recipe.name);
  }
  try {
    return load_model(path, recipe.draft_model_formats(), options.threads);
  } catch (const Error& error) {
    fail(error.kind(), "the draft model: {}", error.what());
  }
}

void check_names(const char* what, const std::vector<std::string>& names,
                 const std::vector<std::string>& known) {
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    fail(ErrorKind::kUsage, "there is no {} \"{}\"; known are {}", what, name, fmt::join(known, ", "));
  }
}

void show_progress(const std::string& what, double fraction) {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  const auto now = std::chrono::steady_clock::now();
  if (progress_bar.what != what) {
    end_progress();
    progress_bar = {.what = what, .start = now};
  }
  if (!terminal) {
    if (progress_bar.visible || now - progress_bar.start < std::chrono::seconds(10)) return;
    say("verbatim: {}; this may take a while\n", what);
    progress_bar.visible = true;
    return;
  }
  if (now - progress_bar.start < std::chrono::seconds(1)) return;
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(fraction * kWidth);
  write_error(fmt::format("\r{} [{:=<{}}{: <{}}] {:3.0f} %", what, "", filled, "", kWidth - filled,
                          fraction * 100.0));
  progress_bar.visible = true;
}

void show_measuring(double fraction) {
  show_progress("measuring what passes cost", fraction);
}

void show_reading(double fraction) {
  fraction < 1.0 ? show_progress("reading the prompt", fraction) : end_progress();
}

void end_progress() {
  if (progress_bar.visible && isatty(STDERR_FILENO) == 1) write_error("\r\033[K");
  progress_bar = {};
}

void print_warnings(const std::string& model, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    say("verbatim: warning: {}: {}\n", one_line(model), one_line(warning));
  }
}

int64_t peak_resident_bytes() {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

std::string read_text(const std::string& path) {
  if (path == "-") return read_descriptor(STDIN_FILENO, kLongestText, "standard input");
  return read_input(path, kLongestText, Readable::kPipeToo);
}

std::string human_bytes(double bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 1000.0 && unit < 4) {
    bytes /= 1000.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.2f} {}", bytes, units[unit]);
}

std::string summary(const Stats& stats, const Recipe& recipe) {
  std::string line =
      fmt::format("{} prompt tokens in {:.2f} s; {} tokens at {:.1f} tokens/s with {}", stats.prompt_tokens,
                  stats.seconds_prefill, stats.generated_tokens, stats.tokens_per_second(), recipe.name);
  if (stats.drafted > 0) {
    line += fmt::format(" ({:.0f} % of {} drafts accepted, {:.2f} tokens per pass)",
                        100.0 * stats.acceptance_rate(), stats.drafted, stats.mean_accepted_length());
  }
  return line + fmt::format("; stopped by {}", finish_reason_name(stats.finish));
}

}  // namespace verbatim::app
