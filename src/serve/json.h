#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace verbatim::serve {

/// JSON whose objects keep their members in the order in which they were written: templates show it to
/// models.
using Json = nlohmann::ordered_json;

/// How deep the lists and objects of a request may lie in each other.
inline constexpr int kDeepestJson = 64;

/// Parses the body of a request. Throws HttpError(400) for what is not JSON in UTF-8, lies deeper than
/// kDeepestJson, has a key twice in one object, or has a number beyond the range of a double.
Json parse_body(std::string_view body);

/// JSON as one line of text. Bytes of strings that are no UTF-8 become U+FFFD.
std::string dump(const Json& json);

}  // namespace verbatim::serve
