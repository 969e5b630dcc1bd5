#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "signals.h"
#include "terminal.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

/// The formats to load a model in for a recipe: what it needs or, for a planner, which does with what there
/// is, all that a packed file holds, and a copy to draft from beside weights that are not in BF16. None:
/// those of the file.
std::vector<std::string> formats_for(const Recipe& recipe, const std::string& model);

/// Options that several commands share.
struct CommonOptions {
  std::string model;
  std::string recipe;             // none: auto
  int32_t draft_length = 0;       // 0: the recipe's
  float draft_threshold = -1.0f;  // negative: the recipe's
  int32_t threads = 0;
  std::string cache;  // none: the recipe's
  std::string draft_model;
  std::vector<std::string> formats;  // none: what the recipe needs
  SamplingOptions sampling;

  /// What to load the model in: what was asked for, or else formats_for() it.
  std::vector<std::string> load_formats(const Recipe& used) const;
};

/// Adds an option that takes several values with commas between.
template <typename T>
CLI::Option* add_list(CLI::App& command, const char* name, std::vector<T>& values, const char* what) {
  return command.add_option(name, values, what)->delimiter(',')->allow_extra_args(false);
}

/// Adds MODEL.
void add_model(CLI::App& command, CommonOptions& options);
/// Adds --recipe, --draft-length, --draft-threshold, --threads and the sampling options.
void add_decoding(CLI::App& command, CommonOptions& options);
/// Adds the sampling options alone.
void add_sampling(CLI::App& command, SamplingOptions& choice);

/// The recipe that the options name, or else "auto", with what they override.
Recipe chosen_recipe(const CommonOptions& options);

/// Loads a model with a progress bar and prints its warnings to stderr.
Model load_model(const std::string& path, const std::vector<std::string>& formats, int32_t threads);
/// Likewise, with further options; their progress is this bar.
Model load_model(const std::string& path, ModelOptions options);

/// The model that the recipe drafts with, if it does: the one that the options name, or else the recipe.
/// Throws Error(kUsage) when it needs one and none is named.
std::optional<Model> load_draft_model(const CommonOptions& options, const Recipe& recipe);

/// Throws Error(kUsage) unless each of the names, which are of `what`, is known.
void check_names(const char* what, const std::vector<std::string>& names,
                 const std::vector<std::string>& known);

/// A progress bar on stderr, after its first second, if that is a terminal; else one line after ten seconds,
/// which says what is going on. A bar of another name takes its place.
void show_progress(const std::string& what, double fraction);
/// The bar of Session::prepare().
void show_measuring(double fraction);
/// The bar of GenerateOptions::prefill_progress. It removes itself when the prompt is read.
void show_reading(double fraction);
/// Removes the bar.
void end_progress();

/// What packing a model had to warn of, on standard error.
void print_warnings(const std::string& model, const std::vector<std::string>& warnings);

/// The most memory this process has had resident, in bytes.
int64_t peak_resident_bytes();

/// The whole of a file or pipe, or of standard input for "-", which may hold 1 GiB. Throws Error(kBadInput).
std::string read_text(const std::string& path);

/// "1.50 MB"
std::string human_bytes(double bytes);

/// "generated 128 tokens at 95.2 tokens/s; ..." for people.
std::string summary(const Stats& stats, const Recipe& recipe);

}  // namespace verbatim::app
