#include "serve/matched_stop.h"

#include <algorithm>

#include "serve/token_json.h"

namespace verbatim::serve {

std::string matched_stop(const Model& model, const GenerateResult& result, std::span<const std::string> stops,
                         std::span<const int32_t> shown_tokens) {
  std::string said;
  for (const int32_t token : result.tokens) said += bytes_of_token(model, token, shown_tokens);
  // Some vocabularies begin a text with a space that is none of it, so places in `said` are not quite those
  // of the answer's text. The stop that comes first is the one that ended it.
  const size_t from = std::min(result.text.size(), said.size());
  std::string first;
  size_t place = std::string::npos;
  for (const std::string& stop : stops) {
    const size_t found = said.find(stop, from);
    if (found < place) {
      place = found;
      first = stop;
    }
  }
  return first;
}

}  // namespace verbatim::serve
