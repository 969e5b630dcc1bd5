#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim {

/// A named way to decode: what drafts, what verifies, and when drafting stops. Written as TOML in recipes/.
struct Recipe {
  enum class Drafter {
    kNone,  ///< plain decoding: one token per pass
    kSelf,  ///< another reading of the same model, sharing its cache
  };

  std::string name;
  std::string summary;  ///< one line for people
  std::string source;   ///< the paper and section it comes from
  Drafter drafter = Drafter::kNone;
  std::string draft_reading;  ///< e.g. "mxfp4-w4a8"; empty without a drafter
  int32_t draft_length = 0;   ///< the most tokens drafted per step
  /// Drafting stops after a token whose probability under the draft is below this; 0 never stops early.
  float draft_threshold = 0.0f;

  /// Whether the text is byte for byte that of plain decoding. So far every recipe is.
  bool lossless() const { return true; }
  /// The formats to load a model in for this recipe, as ModelOptions::formats wants them: the one that the
  /// drafts are read from, and the model's own beside it unless that one is sure to be lossless itself.
  std::vector<std::string> formats() const;
};

/// The names of the built-in recipes, in alphabetical order.
std::vector<std::string> recipe_names();

/// A built-in recipe by name, or the recipe in a file if `name_or_path` ends in ".toml". Throws
/// Error(kBadInput) when there is none, or the file says something unknown or out of range; the message says
/// where.
Recipe load_recipe(const std::string& name_or_path);

/// A recipe from its TOML text; `where` names it in error messages.
Recipe parse_recipe(std::string_view toml, const std::string& where);

}  // namespace verbatim
