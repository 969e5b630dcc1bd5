#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/regex.h"

namespace verbatim {

/// A pattern of a tokenizer.json, which is searched for in a text: a string or a regular expression.
struct Pattern {
  std::string literal;  ///< the string, not empty, if there is no regex
  std::optional<Regex> regex;

  /// The matches from left to right; they do not overlap.
  std::vector<TextRange> find_all(std::string_view text) const;
};

}  // namespace verbatim
