#include "text/pattern.h"

namespace verbatim {

std::vector<TextRange> Pattern::find_all(std::string_view text) const {
  std::vector<TextRange> ranges;
  if (regex) {
    Regex::Matches matches(*regex, text);
    while (const auto range = matches.next()) ranges.push_back(*range);
    return ranges;
  }
  for (size_t at = text.find(literal); at != std::string_view::npos;
       at = text.find(literal, at + literal.size())) {
    ranges.push_back({at, at + literal.size()});
  }
  return ranges;
}

}  // namespace verbatim
