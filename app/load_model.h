#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model_options.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

/// Loads a model with a progress bar and prints its warnings to stderr.
Model load_model(const std::string& path, const std::vector<std::string>& formats, int32_t threads);
/// Likewise, with further options; their progress is this bar.
Model load_model(const std::string& path, ModelOptions options);

/// The model that the recipe drafts with, if it does: the one that the options name, or else the recipe.
/// Throws Error(kUsage) when it needs one and none is named.
std::optional<Model> load_draft_model(const CommonOptions& options, const Recipe& recipe);

/// What packing a model had to warn of, on standard error.
void print_warnings(const std::string& model, const std::vector<std::string>& warnings);

}  // namespace verbatim::app
