#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace verbatim::serve {

/// JSON whose objects keep their members in the order in which they were written: templates show it to
/// models.
using Json = nlohmann::ordered_json;

/// How deep the lists and objects of a request may lie in each other.
inline constexpr int kDeepestJson = 64;

/// How much the JSON texts that a request holds as strings may hold in all, as they are parsed one by one.
struct JsonBudget {
  int64_t values = 1'000'000;
  int64_t members = 100'000;
};

/// Parses the body of a request. Throws HttpError(400) for what is not JSON in UTF-8, lies deeper than
/// kDeepestJson, has a key twice in one object, or has a number beyond the range of a double.
Json parse_body(std::string_view body);

/// Parses a JSON text that stands in a string, within the limits of a body: nothing if it is not JSON or
/// breaks one of parse_body()'s rules, or if it holds more than what is left of the budget, which it takes
/// from.
std::optional<Json> parse_inner(std::string_view text, JsonBudget& budget);

/// JSON as one line of text. Bytes of strings that are no UTF-8 become U+FFFD.
std::string dump(const Json& json);

}  // namespace verbatim::serve
