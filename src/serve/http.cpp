#include "serve/http.h"

#include <algorithm>

namespace verbatim::serve {

std::string_view HttpRequest::header(std::string_view name) const {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const auto same = [&](std::string_view other) {
    return std::equal(name.begin(), name.end(), other.begin(), other.end(),
                      [&](char a, char b) { return lower(a) == lower(b); });
  };
  const auto found =
      std::find_if(headers.begin(), headers.end(), [&](const auto& each) { return same(each.first); });
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace verbatim::serve
