#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/regex.h"

namespace verbatim {

/// What a tokenizer.json looks for in a text: a string or a regular expression.
struct Pattern {
  std::string literal;  ///< used when there is no regex; must not be empty then
  std::optional<Regex> regex;

  /// The matches from left to right; they do not overlap.
  std::vector<TextRange> find_all(std::string_view text) const;
};

}  // namespace verbatim
