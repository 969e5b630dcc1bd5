#pragma once

#include <optional>
#include <string>
#include <vector>

#include "verbatim/verbatim.h"

namespace verbatim::app {

/// A recipe to measure, and what it runs on.
struct DecodeCase {
  Recipe recipe;
  Model model;
  std::optional<Model> draft_model;  ///< that another model drafts
  /// What the recipe would hold in memory by itself: all stores of the matrices that it needs, those of the
  /// draft model too; no embeddings, keys or values. A planner needs all that a packed file holds.
  int64_t weight_bytes = 0;
};

/// The name of the reading that a case verifies with. Cases with the same promise the same text.
std::string verifying_reading(const DecodeCase& one);

/// Loads what the recipes need (needed_formats()), in their order. Those that verify
/// with the model's own weights share one copy of them; every other set of formats is loaded by itself, for
/// in such a copy verification reads the store that the drafts are nested in. `draft_model` replaces the
/// draft models that recipes name; empty: it does not. Throws Error(kUsage) when a recipe lacks a draft
/// model.
std::vector<DecodeCase> load_cases(const std::string& model, const std::vector<Recipe>& recipes,
                                   const std::string& draft_model, int32_t threads);

}  // namespace verbatim::app
