#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command_line.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

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

  /// How to load the model: in the formats that were asked for, or else those that the recipes need.
  ModelOptions load_options(std::vector<Recipe> recipes) const;
};

/// Adds MODEL.
void add_model(Command command, CommonOptions& options);
/// Adds --recipe, --draft-length, --draft-threshold, --threads, --portable and the sampling options.
void add_decoding(Command command, CommonOptions& options);
/// Adds --portable, which chooses the kernels of this process before the command's work begins.
Option add_portable(Command command);
/// Adds the sampling options alone.
void add_sampling(Command command, SamplingOptions& choice);

/// The recipe that the options name, or else "auto", with what they override.
Recipe chosen_recipe(const CommonOptions& options);

/// Throws Error(kUsage) unless each of the names, which are of `what`, is known.
void check_names(const char* what, const std::vector<std::string>& names,
                 const std::vector<std::string>& known);

}  // namespace verbatim::app
