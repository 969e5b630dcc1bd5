#pragma once

#include <string>
#include <string_view>

#include "verbatim/recipe.h"

namespace verbatim::app {

// What a recipe is, in words for people.

/// "mxfp4-w4a8", "the first 4 layers in full", "another model in mxfp4-w4a8", "n-grams"
std::string level_words(const DraftLevel& level);

/// The levels from the model downwards: "mxbf16-draft, itself drafted for by n-grams"; empty for plain
/// decoding.
std::string drafts_words(const Recipe& recipe);

/// The weights, models and files that it takes, as a phrase.
std::string needs_words(const Recipe& recipe);

/// What holds for its text: "the bytes of plain decoding", ...
std::string guarantee_words(const Recipe& recipe);

/// One line for whoever reads a text that is not plain decoding's, or an empty one for lossless recipes.
std::string lossy_warning(const Recipe& recipe);

}  // namespace verbatim::app
